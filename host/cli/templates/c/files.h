/* Notes in a folder: `read NAME`, and `write NAME` with the text on `in`. Returns the exit code. */

#ifndef FILES_H
#define FILES_H

#include <stdio.h>

int run(const char *folder, int argc, char **argv, FILE *in, FILE *out);

#endif
