// A command-line program: numbers from 0 to 100 as arguments, a PNG on standard output. toolcell.toml makes a tool of it.
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strconv"
)

const (
	height = 100
	bar    = 8 // pixels wide, one of them a gap
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	// What toolcell.toml has before the values.
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	values := make([]int, len(arguments))
	for i, argument := range arguments {
		value, err := strconv.Atoi(argument)
		if err != nil || value < 0 || value > height {
			return fmt.Errorf("%q is not a number from 0 to %d", argument, height)
		}
		values[i] = value
	}
	return png.Encode(os.Stdout, bars(values))
}

func bars(values []int) image.Image {
	picture := image.NewGray(image.Rect(0, 0, bar*len(values), height))
	for x := 0; x < picture.Rect.Dx(); x++ {
		for y := 0; y < height; y++ {
			grey := color.Gray{0xff}
			if height-y <= values[x/bar] && x%bar < bar-1 {
				grey.Y = 0x30
			}
			picture.SetGray(x, y, grey)
		}
	}
	return picture
}
