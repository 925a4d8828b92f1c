/*
 * Accounts and charges. Everything that a client can make the server keep embeds a charge, which an
 * account must grant before the thing exists and gets back when it is freed; so nothing can be
 * forgotten and everything has a limit. Accounts form a chain (session, user, server): a charge
 * counts in all of them, and the tightest limit holds.
 *
 * Where one server has several users, what it has is shared among them: a user may take so much
 * that what is then left is at least as much as he has, times the number of users. So the first can
 * have a half, and who comes n-th finds 1/(n(n+1)) of the whole even if all before him took what
 * they could get. Not shared but first come, first served: memory of the device, which the device
 * itself does not divide among users either.
 *
 * Event loop only.
 */
#ifndef GMUX_SERVER_ACCOUNT_H
#define GMUX_SERVER_ACCOUNT_H

#include "base/attr.h"
#include "transport/session.h"

enum srv_quantity {
    SRV_DEVICE_BYTES, /* of the first device; the others' follow */
    SRV_DEVICE_BYTES_LAST = SRV_DEVICE_BYTES + TP_DEVICES - 1,
    SRV_HOST_BYTES,
    SRV_ALLOCATIONS,
    SRV_MAPPINGS, /* ranges that the executor has mapped */
    SRV_MODULES,
    SRV_IMAGE_BYTES,
    SRV_CONTEXTS,
    SRV_OBJECTS,        /* memory objects made */
    SRV_NAMES,          /* for objects; and ranges reserved */
    SRV_IMPORTED_BYTES, /* of others' memory; as for one's own */
    SRV_IMPORTED_BYTES_LAST = SRV_IMPORTED_BYTES + TP_DEVICES - 1,
    SRV_WINDOW_BYTES, /* addresses */
    SRV_LEAVING, /* sessions whose client is gone and which the executor has not let go of yet; they
                    do not count among the following */
    SRV_SESSIONS,
    SRV_QUANTITIES,
};

/* Memory of one device. */
static inline enum srv_quantity srv_device_bytes(uint32_t device)
{
    return (enum srv_quantity)(SRV_DEVICE_BYTES + device);
}
static inline enum srv_quantity srv_imported_bytes(uint32_t device)
{
    return (enum srv_quantity)(SRV_IMPORTED_BYTES + device);
}

/* Whether it is either of them, of whichever device. */
static inline bool srv_is_device_memory(enum srv_quantity q)
{
    return q <= SRV_DEVICE_BYTES_LAST || (q >= SRV_IMPORTED_BYTES && q <= SRV_IMPORTED_BYTES_LAST);
}

struct srv_account {
    struct srv_account *parent; /* NULL at the top */
    uint64_t used[SRV_QUANTITIES];
    uint64_t limit[SRV_QUANTITIES];
    const unsigned *sharers; /* this is one of so many (at least 1) who share what the parent has;
                                NULL: no sharing */
};

/* Zeroed: charges nothing. */
struct srv_charge {
    struct srv_account *account;
    enum srv_quantity quantity;
    uint64_t amount;
};

/* All limits open. `parent` outlives it. */
void srv_account_init(struct srv_account *a, struct srv_account *parent);
/* When the account's owner ends: false if anything is still charged, which is a mistake of ours and
 * logged. */
bool srv_account_check_clear(const struct srv_account *a);
/* How much more of `q` the account and its parents would grant. */
uint64_t srv_account_left(const struct srv_account *a, enum srv_quantity q);

/* Charges `amount` to `a` and its parents; 0, or -EDQUOT with nothing changed. `c` is zeroed or
 * released. */
GM_MUST_CHECK int srv_charge(struct srv_charge *c, struct srv_account *a, enum srv_quantity q,
                             uint64_t amount);
/* Gives it back. Harmless on a charge that holds nothing. */
void srv_charge_release(struct srv_charge *c);

/* Makes a charge another one; `c` has its account and quantity, if nothing else. -EDQUOT with
 * nothing changed; less is always granted. */
GM_MUST_CHECK int srv_charge_resize(struct srv_charge *c, uint64_t amount);

/* What is charged to `a` counts in another parent from now on, whatever that one's limits say. */
void srv_account_move(struct srv_account *a, struct srv_account *parent);

/* "device_bytes"; the same for all devices */
const char *srv_quantity_name(enum srv_quantity q);

#endif
