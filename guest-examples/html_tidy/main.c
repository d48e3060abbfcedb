/* Mends and formats the HTML on stdin, or says what is wrong with it: a small front for the library HTML Tidy.
 *
 *   html_tidy [--body] [--xhtml] [--indent] [--wrap N]  < page.html   prints the mended page
 *   html_tidy --check                                   < page.html   prints what is wrong, as JSON
 *
 * An ordinary program: it also builds and runs natively. Ends with 0 once the page was read, whatever was wrong with
 * it, with 2 where an option is, and with 1 where Tidy gives up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tidy.h"
#include "tidybuffio.h"

/* As many as anybody mends at a time; "left_out" counts the others. */
#define PROBLEMS_MAX 200
/* Columns; Tidy takes any number. */
#define WRAP_MAX 1000

static unsigned printed, left_out;

static void print_json_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static const char *severity(TidyReportLevel level) {
    switch (level) {
    case TidyError:
    case TidyBadDocument:
    case TidyFatal:
        return "error";
    case TidyWarning:
        return "warning";
    case TidyInfo:
    case TidyAccess:
        return "info";
    default:
        return NULL; /* a summary, or about the options */
    }
}

/* Called for each message; those about the page are printed as members of a JSON list. */
static Bool TIDY_CALL print_problem(TidyMessage message) {
    const char *kind = severity(tidyGetMessageLevel(message));
    if (kind == NULL || tidyGetMessageLine(message) < 1) /* not about a place */
        return no;
    if (printed == PROBLEMS_MAX) {
        left_out++;
        return no;
    }
    printf("%s{\"line\":%d,\"column\":%d,\"severity\":\"%s\",\"message\":", printed++ ? "," : "",
           tidyGetMessageLine(message), tidyGetMessageColumn(message), kind);
    print_json_text(tidyGetMessage(message));
    putchar('}');
    return no;
}

static Bool TIDY_CALL be_quiet(TidyMessage message) {
    (void)message;
    return no;
}

static int read_page(TidyBuffer *page) {
    char chunk[4096];
    size_t read;
    while ((read = fread(chunk, 1, sizeof chunk, stdin)) > 0)
        tidyBufAppend(page, chunk, (uint)read);
    return ferror(stdin) ? -1 : 0;
}

/* Prints {"problems":[…],"errors":N,"warnings":N,"left_out":N}. */
static int check(TidyDoc tidy, TidyBuffer *page) {
    tidySetMessageCallback(tidy, print_problem);
    fputs("{\"problems\":[", stdout);
    int status = tidyParseBuffer(tidy, page);
    if (status >= 0)
        status = tidyRunDiagnostics(tidy);
    printf("],\"errors\":%u,\"warnings\":%u,\"left_out\":%u}\n", tidyErrorCount(tidy), tidyWarningCount(tidy), left_out);
    return status < 0 ? 1 : 0;
}

static int mend(TidyDoc tidy, TidyBuffer *page) {
    TidyBuffer mended = {0};
    tidySetMessageCallback(tidy, be_quiet);
    int status = tidyParseBuffer(tidy, page);
    if (status >= 0)
        status = tidyCleanAndRepair(tidy);
    if (status >= 0)
        status = tidySaveBuffer(tidy, &mended);
    if (status >= 0 && mended.size > 0)
        fwrite(mended.bp, 1, mended.size, stdout);
    tidyBufFree(&mended);
    if (status < 0)
        fprintf(stderr, "html_tidy: the page cannot be mended (%d)\n", status);
    return status < 0 ? 1 : 0;
}

static int wrong_option(const char *what) {
    fprintf(stderr, "html_tidy: %s\n", what);
    return 2;
}

/* Sets the option that argv[*at] names; 0 where there is none of that name, or its value is wrong. */
static int take_option(TidyDoc tidy, char **argv, int *at, int *checking) {
    const char *option = argv[*at];
    if (strcmp(option, "--check") == 0)
        return *checking = 1;
    if (strcmp(option, "--body") == 0)
        return tidyOptSetInt(tidy, TidyBodyOnly, TidyYesState);
    if (strcmp(option, "--xhtml") == 0)
        return tidyOptSetBool(tidy, TidyXhtmlOut, yes);
    if (strcmp(option, "--indent") == 0)
        return tidyOptSetInt(tidy, TidyIndentContent, TidyAutoState);
    if (strcmp(option, "--wrap") == 0 && argv[*at + 1] != NULL) {
        char *end;
        long columns = strtol(argv[++*at], &end, 10);
        return *end == '\0' && columns >= 0 && columns <= WRAP_MAX && tidyOptSetInt(tidy, TidyWrapLen, (ulong)columns);
    }
    return 0;
}

int main(int argc, char **argv) {
    TidyDoc tidy = tidyCreate();
    TidyBuffer page = {0};
    int checking = 0;

    tidySetCharEncoding(tidy, "utf8");
    tidyOptSetInt(tidy, TidyWrapLen, 0);
    tidyOptSetInt(tidy, TidyUseCustomTags, TidyCustomBlocklevel); /* <my-element> is not a mistake */
    tidyOptSetBool(tidy, TidyMark, no);                           /* no <meta name="generator"> of Tidy's */
    tidyOptSetBool(tidy, TidyForceOutput, yes);
    tidyOptSetBool(tidy, TidyQuiet, yes);
    for (int at = 1; at < argc; at++)
        if (!take_option(tidy, argv, &at, &checking))
            return wrong_option("options are --check, --body, --xhtml, --indent and --wrap COLUMNS (0 to 1000)");
    if (read_page(&page) != 0)
        return wrong_option(strerror(errno));

    int status = checking ? check(tidy, &page) : mend(tidy, &page);
    tidyBufFree(&page);
    tidyRelease(tidy);
    return status;
}
