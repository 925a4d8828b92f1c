/*
 * Accounts and charges. Every object that a client can make the server keep embeds a charge. An
 * account must grant it before the object exists and gets it back when the object is freed; so
 * nothing can be forgotten, and everything has a limit. Accounts form a chain (session, user,
 * server): a charge counts in all of them, and the tightest limit holds.
 *
 * Where one server has several users, what it has is shared among them. A user may take as much as
 * leaves the same amount, times the number of users, free. So the first user can have a half, and
 * the n-th finds 1/(n(n+1)) of the whole, even if all before took all they could. Memory of the
 * device is the exception: it is first come, first served, since the device does not divide it
 * among users either.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_ACCOUNT_H
#define GMUX_SERVER_ACCOUNT_H

#include "base/attr.h"
#include "transport/session.h"

enum srv_quantity {
    SRV_DEVICE_BYTES, /* of the first device; those of the others follow */
    SRV_DEVICE_BYTES_LAST = SRV_DEVICE_BYTES + TP_DEVICES - 1,
    SRV_HOST_BYTES,
    SRV_ALLOCATIONS,
    SRV_MAPPINGS, /* ranges that the executor has mapped */
    SRV_MODULES,
    SRV_IMAGE_BYTES,
    SRV_IMAGE_FILES, /* images that are in files of their own */
    SRV_CONTEXTS,
    SRV_OBJECTS,        /* memory objects that the session has made */
    SRV_NAMES,          /* names for objects, and reserved ranges */
    SRV_IMPORTED_BYTES, /* bytes of other programs' memory; the limit is that of one's own */
    SRV_IMPORTED_BYTES_LAST = SRV_IMPORTED_BYTES + TP_DEVICES - 1,
    SRV_WINDOW_BYTES, /* addresses in windows */
    /* Sessions whose client is gone, but which the executor has not let go of yet. They do not
     * count as SRV_SESSIONS. */
    SRV_LEAVING,
    SRV_SESSIONS,
    SRV_QUANTITIES,
};

/* The quantity for memory of one device. */
static inline enum srv_quantity srv_device_bytes(uint32_t device)
{
    return (enum srv_quantity)(SRV_DEVICE_BYTES + device);
}
static inline enum srv_quantity srv_imported_bytes(uint32_t device)
{
    return (enum srv_quantity)(SRV_IMPORTED_BYTES + device);
}

/* Whether `q` is memory of a device, one's own or imported. */
static inline bool srv_is_device_memory(enum srv_quantity q)
{
    return q <= SRV_DEVICE_BYTES_LAST || (q >= SRV_IMPORTED_BYTES && q <= SRV_IMPORTED_BYTES_LAST);
}

struct srv_account {
    struct srv_account *parent; /* NULL at the top */
    uint64_t used[SRV_QUANTITIES];
    uint64_t limit[SRV_QUANTITIES];
    /* How many accounts (at least 1) share what the parent has; NULL: they do not share. */
    const unsigned *sharers;
};

/* Zeroed, it charges nothing. */
struct srv_charge {
    struct srv_account *account;
    enum srv_quantity quantity;
    uint64_t amount;
};

/* Begins without limits. `parent` outlives the account. */
void srv_account_init(struct srv_account *a, struct srv_account *parent);
/* Called when the account's owner ends. False: something is still charged, which is our own mistake
 * and logged. */
bool srv_account_check_clear(const struct srv_account *a);
/* How much more of `q` the account and its parents would grant. */
uint64_t srv_account_left(const struct srv_account *a, enum srv_quantity q);

/* Charges `amount` to `a` and its parents; 0, or -EDQUOT with nothing changed. `c` is zeroed or
 * released. */
GM_MUST_CHECK int srv_charge(struct srv_charge *c, struct srv_account *a, enum srv_quantity q,
                             uint64_t amount);
/* Gives the charge back. Does nothing if nothing is charged. */
void srv_charge_release(struct srv_charge *c);

/* Changes the amount. If nothing was charged before, `c` only has its account and quantity.
 * -EDQUOT, with nothing changed; a lower amount is always granted. */
GM_MUST_CHECK int srv_charge_resize(struct srv_charge *c, uint64_t amount);

/* Moves what is charged to `a` to another parent, whatever that parent's limits are. */
void srv_account_move(struct srv_account *a, struct srv_account *parent);

/* The quantity's name, such as "device_bytes"; it is the same for all devices. */
const char *srv_quantity_name(enum srv_quantity q);

#endif
