package main

import (
	"image"
	"testing"
)

func TestBarsAreAsHighAsTheirValues(t *testing.T) {
	values := []int{100, 0, 50}
	picture := bars(values).(*image.Gray)
	for i, value := range values {
		inked := 0
		for y := 0; y < height; y++ {
			if picture.GrayAt(i*bar, y).Y == 0x30 {
				inked++
			}
		}
		if inked != value {
			t.Errorf("bar %d is %d high, not %d", i, inked, value)
		}
	}
}
