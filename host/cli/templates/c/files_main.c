/* A command-line program. toolcell.toml makes tools of it, and mounts the folder. */

#include "files.h"

int main(int argc, char **argv) {
    return run("/notes", argc, argv, stdin, stdout);
}
