/*
 * Writes completions for shells, from the tables of commands and options. The shell asks `gmux ls`
 * for what is running.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "control/command.h"
#include "control/options.h"

#define CLIENTS_COMMAND "gmux ls --format=csv,noheader 2>/dev/null | cut -d, -f1"
#define LIMITS          "share= guarantee= memory= priority= group="

static const struct gm_option none[] = { { .name = NULL } };

static const struct gm_option *options_of(const struct cli_command *c)
{
    return c->options ? c->options : none;
}

static void print_commands(void)
{
    for (const struct cli_command *c = cli_commands; c->name; c++)
        printf("%s%s", c == cli_commands ? "" : " ", c->name);
}

/* --- bash ------------------------------------------------------------------------------------- */

static void bash_command(const struct cli_command *c)
{
    printf("    %s)\n", c->name);
    fputs("        case $previous in\n", stdout);
    for (const struct gm_option *o = options_of(c); o->name; o++) {
        if (!o->argument || o->hidden)
            continue;
        if (o->letter)
            printf("        -%c | ", o->letter);
        else
            fputs("        ", stdout);
        printf("--%s)\n            COMPREPLY=($(compgen -W \"%s\" -- \"$word\"))\n            "
               "return\n            ;;\n",
               o->name, o->values ? o->values : "");
    }
    fputs("        esac\n        words_of=\"--help", stdout);
    for (const struct gm_option *o = options_of(c); o->name; o++)
        if (!o->hidden)
            printf(" --%s", o->name);
    fputs("\"\n", stdout);
    if (c->words == CLI_WORDS_PROGRAM)
        fputs("        [[ $word == -* ]] || kind=program\n", stdout);
    if (c->words == CLI_WORDS_CLIENT || c->words == CLI_WORDS_LIMITS)
        fputs("        [[ $word == -* ]] || words_of=$(" CLIENTS_COMMAND ")\n", stdout);
    if (c->words == CLI_WORDS_LIMITS)
        fputs("        [ \"$COMP_CWORD\" -le 2 ] || { words_of=\"" LIMITS
              "\"; compopt -o nospace; }\n",
              stdout);
    fputs("        ;;\n", stdout);
}

/* Completes gmux-control's options and commands, under either of its names. */
static void print_control_words(void)
{
    for (const struct gm_option *o = ctl_options_table; o->name; o++)
        if (!o->hidden)
            printf("--%s ", o->name);
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        printf("%s%s", c == ctl_commands ? "" : " ", c->name);
}

static void print_bash(void)
{
    fputs("# bash completion for gmux: written by `gmux --dump-completion bash`.\n"
          "_gmux()\n{\n"
          "    local word=$2 previous=$3 words_of= kind= i\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -le 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"",
          stdout);
    print_commands();
    fputs(
        " help --version\" -- \"$word\"))\n        return\n    fi\n"
        "    if [[ ${COMP_WORDS[1]} == run ]]; then # behind the program are its own words\n"
        "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
        "            case ${COMP_WORDS[i]} in\n"
        "            --)\n                kind=program\n                break\n                ;;\n"
        "            -*=*",
        stdout);
    for (const struct gm_option *o = cli_run_options; o->name; o++)
        if (!o->argument)
            printf(" | --%s", o->name);
    fputs(") ;;\n            -*) ((i++)) ;;\n            *)\n                kind=file\n           "
          "     break\n      "
          "          ;;\n"
          "            esac\n        done\n"
          "        if [ \"$kind\" = file ]; then\n            COMPREPLY=($(compgen -f -- "
          "\"$word\"))\n            "
          "return\n"
          "        fi\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n    help)\n        words_of=\"",
          stdout);
    print_commands();
    fputs("\"\n        ;;\n", stdout);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        bash_command(c);
    fputs("    esac\n"
          "    if [ \"$kind\" = program ]; then\n        COMPREPLY=($(compgen -c -- \"$word\") "
          "$(compgen -f -- "
          "\"$word\"))\n"
          "    else\n        COMPREPLY=($(compgen -W \"$words_of\" -- \"$word\"))\n    fi\n}\n"
          "complete -o filenames -F _gmux gmux\n\n"
          "_gmux_control()\n{\n    COMPREPLY=($(compgen -W \"",
          stdout);
    print_control_words();
    fputs("\" -- \"$2\"))\n}\ncomplete -o default -F _gmux_control gmux-control "
          "nvidia-cuda-mps-control\n",
          stdout);
}

/* --- zsh -------------------------------------------------------------------------------------- */

/* Prints a text that stands between quotes and brackets of zsh. */
static void zsh_text(const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '\'':
            fputs("'\\''", stdout);
            break;
        case '[':
        case ']':
        case ':':
            printf("\\%c", *s);
            break;
        default:
            putchar(*s);
        }
}

static void zsh_option(const struct gm_option *o)
{
    char letter[3] = { '-', o->letter, '\0' };
    for (int i = o->letter ? 0 : 1; i < 2; i++) {
        printf("            '%s%s%s", i ? "--" : letter, i ? o->name : "",
               !o->argument ? ""
               : i          ? "="
                            : "+");
        putchar('[');
        zsh_text(o->help);
        putchar(']');
        if (o->argument) {
            putchar(':');
            zsh_text(o->argument);
            printf(":(%s)", o->values ? o->values : "");
        }
        fputs("' \\\n", stdout);
    }
}

static void print_zsh(void)
{
    static const char *const words[] = {
        [CLI_WORDS_NONE] = "            && return\n",
        [CLI_WORDS_PROGRAM] = "            '*::program:_normal -p gmux' && return\n",
        [CLI_WORDS_CLIENT] = "            '1:client:($(" CLIENTS_COMMAND "))' && return\n",
        [CLI_WORDS_LIMITS] = "            '1:client, user or group:($(" CLIENTS_COMMAND "))' \\\n"
                             "            '*:limit:(" LIMITS ")' && return\n",
    };
    fputs("#compdef gmux gmux-control nvidia-cuda-mps-control\n"
          "# zsh completion for gmux: written by `gmux --dump-completion zsh`.\n"
          "if [[ $service != gmux ]]; then\n    compadd -- ",
          stdout);
    print_control_words();
    fputs("\n    return\nfi\n"
          "local -a commands\ncommands=(\n",
          stdout);
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        printf("    '%s:", c->name);
        zsh_text(c->help);
        fputs("'\n", stdout);
    }
    fputs(")\nif ((CURRENT == 2)); then\n    _describe command commands\n    return\nfi\n"
          "local command=$words[2]\nshift words\n((CURRENT--))\ncase $command in\n",
          stdout);
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        printf("    %s)\n        _arguments -s \\\n", c->name);
        for (const struct gm_option *o = options_of(c); o->name; o++)
            if (!o->hidden)
                zsh_option(o);
        fputs("            '--help[Say what the command does]' \\\n", stdout);
        fputs(words[c->words], stdout);
        fputs("        ;;\n", stdout);
    }
    fputs("esac\n", stdout);
}

/* --- fish ------------------------------------------------------------------------------------- */

static void fish_text(const char *s)
{
    putchar('\'');
    for (; *s; s++) {
        if (*s == '\'' || *s == '\\')
            putchar('\\');
        putchar(*s);
    }
    putchar('\'');
}

static void print_fish(void)
{
    static const char *const words[] = {
        [CLI_WORDS_NONE] = "-f",
        [CLI_WORDS_PROGRAM] = "-a '(__fish_complete_subcommand --fcs-skip=2)'",
        [CLI_WORDS_CLIENT] = "-f -a '(" CLIENTS_COMMAND ")'",
        [CLI_WORDS_LIMITS] = "-f -a '(" CLIENTS_COMMAND ") " LIMITS "'",
    };
    fputs("# fish completion for gmux: written by `gmux --dump-completion fish`.\n", stdout);
    for (int i = 0; i < 2; i++) {
        printf("complete -c %s -a '", i ? "nvidia-cuda-mps-control" : "gmux-control");
        print_control_words();
        fputs("'\n", stdout);
    }
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        printf("complete -c gmux -n __fish_use_subcommand -f -a %s -d ", c->name);
        fish_text(c->help);
        putchar('\n');
    }
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        printf("complete -c gmux -n '__fish_seen_subcommand_from %s' %s\n", c->name,
               words[c->words]);
        for (const struct gm_option *o = options_of(c); o->name; o++) {
            if (o->hidden)
                continue;
            printf("complete -c gmux -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
            if (o->letter)
                printf(" -s %c", o->letter);
            if (o->argument)
                printf(" -x -a '%s'", o->values ? o->values : "");
            fputs(" -d ", stdout);
            fish_text(o->help);
            putchar('\n');
        }
    }
}

int cli_completion(const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    for (size_t i = 0; i < GM_ARRAY_LEN(shells); i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print();
            return 0;
        }
    return cli_fail("completion is for bash, zsh or fish, not \"%s\"", shell);
}
