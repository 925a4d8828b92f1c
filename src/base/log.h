/*
 * Diagnostics of our own processes and of the client library. A message has a level and a topic;
 * what is printed is decided by GMUX_LOG, a comma-separated list of levels or topic=level ("info",
 * "warn,module=debug"). Nothing is printed below `warn` in the daemons and nothing at all in a
 * client unless GMUX_LOG asks for it: the client library lives in other people's processes.
 *
 * The logs that users read (control.log, server.log) are a different thing: src/control/logfile.h.
 *
 * Any thread. Lines go to standard error in one write each.
 */
#ifndef GMUX_BASE_LOG_H
#define GMUX_BASE_LOG_H

#include "base/attr.h"

enum gm_log_level {
    GM_LOG_NONE,
    GM_LOG_ERROR,
    GM_LOG_WARN,
    GM_LOG_INFO,
    GM_LOG_DEBUG,
};

/* One per source file or subject: static struct gm_log_topic topic = GM_LOG_TOPIC("module"); */
struct gm_log_topic {
    const char *name;
    int level; /* -1: not looked up yet; relaxed atomic access */
};
#define GM_LOG_TOPIC(topic_name)                                                                   \
    {                                                                                              \
        .name = (topic_name), .level = -1                                                          \
    }

/* The level where GMUX_LOG names none, and the word that starts each line ("gmux-server"). `who` is
 * kept. */
void gm_log_init(const char *who, enum gm_log_level default_level);

/* Whether GMUX_LOG can have that value. */
bool gm_log_is_spec(const char *spec);

/* Lines go to this descriptor from now on; to standard error before. */
void gm_log_to(int fd);

bool gm_log_enabled(struct gm_log_topic *topic, enum gm_log_level level);
void gm_log_write(struct gm_log_topic *topic, enum gm_log_level level, const char *fmt, ...)
    GM_PRINTF(3, 4);

#define gm_log(topic, level, ...)                                                                  \
    do {                                                                                           \
        if (gm_log_enabled((topic), (level)))                                                      \
            gm_log_write((topic), (level), __VA_ARGS__);                                           \
    } while (0)
#define gm_error(topic, ...) gm_log((topic), GM_LOG_ERROR, __VA_ARGS__)
#define gm_warn(topic, ...)  gm_log((topic), GM_LOG_WARN, __VA_ARGS__)
#define gm_info(topic, ...)  gm_log((topic), GM_LOG_INFO, __VA_ARGS__)
#define gm_debug(topic, ...) gm_log((topic), GM_LOG_DEBUG, __VA_ARGS__)

#endif
