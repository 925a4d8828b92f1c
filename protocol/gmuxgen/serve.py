"""Writes src/server/serve.{h,c} and send.{h,c} from protocol/control.api: what clients ask a server, and below that what it
sends: answers, and questions to its executor."""

from .messages import BANNER
from .requests import LATER, answer_of, requests


def between(spec, sender, receiver):
    return [m for m in spec.of("message") if (m.sender, m.receiver) == (sender, receiver)]


def answers(spec):
    """The messages that answer a client's request. A plain status is srv_session_status()'s."""
    names = {answer.name for m in requests(spec) if (answer := answer_of(spec, m))} - {"status"}
    return [m for m in between(spec, "server", "client") if m.name in names]


def handler(m):
    """A handler has the decoded message; with descriptors also the packet, from which it takes them."""
    arguments = ["struct srv_session *c"]
    if m.fields:
        arguments.append(f"const struct wire_{m.name} *m")
    if m.fds:
        arguments.append("struct tp_packet *p")
    return f"const char *srv_on_{m.name}({', '.join(arguments + ['uint64_t serial'])})"


def fd_arguments(m):
    return [] if not m.fds else ["int fd"] if m.fds == 1 else [f"const int fds[{m.fds}]"]


def fd_values(m):
    if not m.fds:
        return "NULL, 0"
    if m.fds > 1:
        return f"fds, {m.fds}"
    return "&fd, 1" if m.fds_min == 1 else "&fd, fd >= 0"


def answer(m):
    arguments = ["struct srv_session *c", "uint64_t serial", f"const struct wire_{m.name} *m"]
    return f"void srv_answer_{m.name}({', '.join(arguments + fd_arguments(m))})"


def question(m):
    arguments = ["struct srv_session *c", f"const struct wire_{m.name} *m", *fd_arguments(m), "srv_answer_fn *done", "void *arg"]
    return f"void srv_{m.name}({', '.join(arguments)})"


def header(spec):
    o = [BANNER, "#ifndef GMUX_SERVER_SERVE_H", "#define GMUX_SERVER_SERVE_H", "",
         '#include "transport/sock.h"', '#include "wire/messages.h"', "",
         "struct srv_session;", "",
         "/* Decodes what a client sent and calls its handler. NULL, or why the client is to be dropped. Event loop only, as all here. */",
         "const char *srv_serve(struct srv_session *c, struct tp_packet *p);", "",
         "/* --- handlers, in the file of their subject: NULL, or why the client is to be dropped. What `m` points to lies in the",
         " * packet and ends with it. `serial` is for the answer; 0: none is wanted. --- */", ""]
    o += [f"{handler(m)};" for m in between(spec, "client", "server")]
    return "\n".join(o + ["", "#endif", ""])


def send_header(spec):
    o = [BANNER, "#ifndef GMUX_SERVER_SEND_H", "#define GMUX_SERVER_SEND_H", "",
         '#include "server/request.h"', '#include "wire/messages.h"', "",
         "struct srv_session;", "",
         "/* --- answers: each ends a request. Nothing is sent if `serial` is 0. A descriptor stays the caller's; -1: none.",
         " * Event loop only, as all here. --- */", ""]
    o += [f"{answer(m)};" for m in answers(spec)]
    o += ["", "/* --- what the executor is asked, in the session's name; see srv_executor_ask() --- */", ""]
    o += [f"{question(m)};" for m in between(spec, "server", "executor")]
    return "\n".join(o + ["", "#endif", ""])


def stub(m):
    o = [f"static const char *serve_{m.name}(struct srv_session *c, struct tp_packet *p)", "{"]
    if m.fields:
        o += [f"    struct wire_{m.name} m;", f"    wire_get_{m.name}(&p->body, &m);"]
    arguments = ["c"] + (["&m"] if m.fields else []) + (["p"] if m.fds else []) + ["p->header.serial"]
    return o + [f"    return srv_on_{m.name}({', '.join(arguments)});", "}", ""]


def rule(m):
    phases = "OFFERED" if m.phase == "opening" else "OPEN"
    answered = "true" if m.answer and m.answer != LATER else "false"
    return f"    [WIRE_{m.name.upper()}] = {{ {phases}, {answered}, serve_{m.name} }},"


def source(spec):
    o = [BANNER, '#include "server/serve.h"', "", '#include "base/attr.h"', '#include "server/server.h"', ""]
    for m in between(spec, "client", "server"):
        o += stub(m)
    o += ["#define OFFERED (1u << SRV_OFFERED)", "#define OPEN    (1u << SRV_ATTACHED | 1u << SRV_FAILED)", "",
          "static const struct request_rule {", "    unsigned phases;", "    bool answered; /* needs a serial to answer to */",
          "    const char *(*serve)(struct srv_session *c, struct tp_packet *p);", "} rules[] = {"]
    o += [rule(m) for m in between(spec, "client", "server")]
    o += ["};", "",
          "const char *srv_serve(struct srv_session *c, struct tp_packet *p)", "{", "    unsigned type = p->header.type;",
          "    if (type >= GM_ARRAY_LEN(rules) || !rules[type].serve)", '        return "a message that no client sends";',
          "    if (!(rules[type].phases & 1u << c->phase))", '        return "a message out of place";',
          "    if (rules[type].answered && p->header.serial == 0)", '        return "a question without a serial";',
          "    c->pending++;", "    return rules[type].serve(c, p);", "}", ""]
    return "\n".join(o)


def send_source(spec):
    o = [BANNER, '#include "server/send.h"', "", '#include "server/server.h"', ""]
    for m in answers(spec):
        o += [answer(m), "{", "    struct wire_enc e = srv_encoder(c->server);", f"    wire_pack_{m.name}(&e, serial, m);",
              f"    srv_session_answer(c, serial, &e, {fd_values(m)});", "}", ""]
    for m in between(spec, "server", "executor"):
        o += [question(m), "{", "    struct wire_enc e = srv_encoder(c->server);", f"    wire_pack_{m.name}(&e, 0, m);",
              f"    srv_executor_ask(&c->server->executor, c, &e, {fd_values(m)}, done, arg);", "}", ""]
    return "\n".join(o)
