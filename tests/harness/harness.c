#include "criterion/criterion.h"

struct harness_test *harness_tests;
struct harness_suite *harness_suites;

void harness_fail(const char *file, int line, const char *what, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s:%d: %s", file, line, what);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    _exit(1);
}

static void run(const struct harness_test *t)
{
    const struct harness_options *suite = NULL;
    for (const struct harness_suite *s = harness_suites; s; s = s->next)
        if (strcmp(s->name, t->suite) == 0)
            suite = &s->options;
    void (*init)(void) = t->options.init ? t->options.init : suite ? suite->init : NULL;
    void (*fini)(void) = t->options.fini ? t->options.fini : suite ? suite->fini : NULL;
    double timeout = t->options.timeout > 0        ? t->options.timeout
                     : suite && suite->timeout > 0 ? suite->timeout
                                                   : 60;
    alarm((unsigned)timeout * 4); /* the sanitizer is slow */
    if (init)
        init();
    t->run();
    if (fini)
        fini();
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    unsigned n = 0, total = 0, failed = 0;

    for (const struct harness_test *t = harness_tests; t; t = t->next)
        total += !t->options.disabled && (!filter || strstr(t->name, filter));
    printf("1..%u\n", total);
    for (const struct harness_test *t = harness_tests; t; t = t->next) {
        int status = -1;
        if (t->options.disabled || (filter && !strstr(t->name, filter)))
            continue;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            run(t);
            exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            status = -1;
        bool good = t->options.signal
                        ? WIFSIGNALED(status) && WTERMSIG(status) == t->options.signal
                        : WIFEXITED(status) && WEXITSTATUS(status) == t->options.exit_code;
        failed += !good;
        if (WIFSIGNALED(status) && !good)
            printf("# ended by signal %d\n", WTERMSIG(status));
        printf("%s %u - %s %s\n", good ? "ok" : "not ok", ++n, t->suite, t->name);
    }
    return failed ? 1 : 0;
}
