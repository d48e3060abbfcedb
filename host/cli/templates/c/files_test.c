#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/files.h"

static int failures;

static void expect(int holds, const char *what) {
    if (holds) return;
    printf("failed: %s\n", what);
    failures++;
}

static int ran(const char *folder, char *verb, char *name, FILE *in, FILE *out) {
    char *argv[] = {"tool", verb, name, NULL};
    return run(folder, 3, argv, in, out);
}

int main(void) {
    char folder[] = "build/notes-XXXXXX", text[16] = {0};
    if (!mkdtemp(folder)) return 1;
    FILE *in = tmpfile(), *out = tmpfile(), *said = tmpfile();
    fputs("größe", in);
    rewind(in);
    expect(ran(folder, "write", "tea", in, said) == 0, "a note is written");
    expect(ran(folder, "read", "tea", in, out) == 0, "a note is read");
    rewind(out);
    expect(fread(text, 1, sizeof text - 1, out) == 7 && !strcmp(text, "größe"), "what is written is read");
    expect(ran(folder, "read", "milk", in, out) == 1, "a note that is not there");
    expect(ran(folder, "read", "../tea", in, out) == 1, "a name that leads elsewhere");
    if (!failures) puts("ok");
    return failures != 0;
}
