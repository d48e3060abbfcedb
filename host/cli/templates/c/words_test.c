#include <stdio.h>
#include <string.h>

#include "../src/counts.h"

static int failures;

static void expect(const char *text, size_t min_length, size_t lines, size_t words, const char *longest) {
    struct counts found = count(text, strlen(text), min_length);
    int same = longest ? found.longest && found.longest_bytes == strlen(longest) && !memcmp(found.longest, longest, strlen(longest))
                       : !found.longest;
    if (found.lines == lines && found.words == words && same) return;
    printf("failed: \"%s\": %zu lines, %zu words, longest \"%.*s\"\n", text, found.lines, found.words, (int)found.longest_bytes,
           found.longest ? found.longest : "");
    failures++;
}

int main(void) {
    expect("", 1, 0, 0, NULL);
    expect("one two\nthree", 1, 2, 3, "three");
    expect("a bb cc\n", 2, 1, 2, "bb");
    expect("größe xxxxx", 5, 1, 2, "größe");
    if (!failures) puts("ok");
    return failures != 0;
}
