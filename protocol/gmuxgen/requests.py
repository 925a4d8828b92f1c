"""Writes src/client/session/ask.{h,c} from protocol/control.api: the client's side of each request."""

from .messages import BANNER


LATER = "later"  # answered by a status that nobody waits for


def requests(spec):
    """What a client asks of its server, or tells it, once it has a session."""
    return [m for m in spec.of("message") if (m.sender, m.receiver) == ("client", "server") and
            (m.answer or m.phase != "opening")]


def answer_of(spec, m):
    return next((a for a in spec.of("message") if a.name == m.answer), None)


def is_bare(answer):
    """Says how it went and nothing else."""
    return [f.name for f in answer.fields] == ["result"]


def declaration(spec, m):
    arguments = ["struct rt_session *s"]
    if m.fields:
        arguments.append(f"const struct wire_{m.name} *m")
    if m.fds:
        arguments.append("int fd")
    answer = answer_of(spec, m)
    if answer and not is_bare(answer):
        arguments.append(f"struct wire_{answer.name} *answer")
    if answer and answer.fds:
        arguments.append("int *answer_fd")
    return f"int rt_ask_{m.name}({', '.join(arguments)})"


def header(spec):
    o = [BANNER, "#ifndef GMUX_CLIENT_SESSION_ASK_H", "#define GMUX_CLIENT_SESSION_ASK_H", "",
         '#include "wire/messages.h"', "",
         "struct rt_session;", "",
         "/* Each sends a request and waits for its answer, with the request lock held. The result is the answer's, that of a",
         " * status in its place, or the session's error; without an answer *answer is all zero. What it points to stays until",
         " * the next request. A descriptor that comes with a success is the caller's; -1: none came. `fd` stays the caller's.",
         " * CUresult. */", ""]
    for m in requests(spec):
        how = f"Answered by {m.answer}" if answer_of(spec, m) else "Not waited for"
        o += [f"/* {how}. */", f"{declaration(spec, m)};"]
    return "\n".join(o + ["", "#endif", ""])


def body(spec, m):
    answer = answer_of(spec, m)
    o = [declaration(spec, m), "{", "    struct wire_enc e;",
         f"    uint64_t serial = {'rt_request_serial(s)' if m.answer else '0'};"]
    if answer and is_bare(answer):
        o += [f"    struct wire_{answer.name} own = {{ 0 }}, *answer = &own;"]
    elif answer:
        o += [f"    *answer = (struct wire_{answer.name}) {{ 0 }};"]
    o += ["    rt_request_encode(s, &e);",
          f"    wire_pack_{m.name}(&e, serial, {'m' if m.fields else f'&(struct wire_{m.name}) {{ 0 }}'});"]
    fd = "fd" if m.fds else "-1"
    if not answer:
        return o + [f"    return rt_request_send(s, &e, {fd});", "}", ""]
    o += [f"    int r = rt_request_send(s, &e, {fd});",
          f"    r = r ? r : rt_request_wait(s, serial, WIRE_{answer.name.upper()});",
          "    if (r == CUDA_SUCCESS)", f"        wire_get_{answer.name}(&s->packet->body, answer);"]
    if any(f.name == "result" for f in answer.fields):
        o += ["    r = r ? r : answer->result;"]
    if answer.fds:
        o += ["    *answer_fd = r == CUDA_SUCCESS ? tp_packet_take_fd(s->packet, 0) : -1;"]
    return o + ["    return r;", "}", ""]


def source(spec):
    o = [BANNER, '#include "client/session/ask.h"', "", "#include <cuda.h>", "",
         '#include "client/session/session.h"', ""]
    for m in requests(spec):
        o += body(spec, m)
    return "\n".join(o)
