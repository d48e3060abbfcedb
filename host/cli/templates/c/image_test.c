#include <stdio.h>
#include <string.h>

#include "../src/image.h"

int main(void) {
    static unsigned char png[PNG_BYTES_MAX];
    int values[] = {100, 0, 50}, failures = 0;
    size_t bytes = draw_bars(values, 3, png);
    if (memcmp(png + 1, "PNG", 3) || memcmp(png + bytes - 4, "\xae\x42\x60\x82", 4)) {
        puts("failed: the picture has neither the begin nor the end of a PNG");
        failures++;
    }
    const unsigned char *rows = png + 8 + 25 + 8 + 7; /* behind the signature, IHDR and the head of IDAT */
    for (int i = 0; i < 3; i++) {
        int inked = 0;
        for (int y = 0; y < HEIGHT; y++) inked += rows[y * 25 + 1 + i * BAR] == 0x30;
        if (inked != values[i]) {
            printf("failed: bar %d is %d high, not %d\n", i, inked, values[i]);
            failures++;
        }
    }
    if (!failures) puts("ok");
    return failures != 0;
}
