/*
 * The sleep/wake handshake of src/transport/ring.c between one producer and one consumer, both ways: records and room.
 *
 * Each processor's stores go through a store buffer of one entry, flushed at any later time or by a fence, as on x86;
 * a load of its own variable by a side is never needed here. With the fences the model has no lost wake-up; compiled
 * with -DNO_FENCE Spin finds one, which shows that the model can see it.
 *
 * Checked: no state in which somebody sleeps for ever (invalid end state), and every record is read.
 */
#define RECORDS 4
#define SIZE    2 /* records that fit */

/* What everybody sees. */
byte tail = 0;
byte head = 0;
byte bell = 0;
bit consumer_sleeps = 0;
bit producer_sleeps = 0;

/* Store buffers: producer's and consumer's, one pending store each. */
bit p_full = 0; bit p_which; byte p_value;
bit c_full = 0; bit c_which; byte c_value;

/* Futex queues. */
bit consumer_waits = 0;
bit producer_waits = 0;

byte taken = 0; /* the consumer's */

#define P_TAIL 0
#define P_SLEEPS 1
#define C_HEAD 0
#define C_SLEEPS 1

inline p_flush() {
    d_step {
        if
        :: p_full && p_which == P_TAIL -> tail = p_value
        :: p_full && p_which == P_SLEEPS -> producer_sleeps = p_value
        :: else
        fi;
        p_full = 0
    }
}

inline c_flush() {
    d_step {
        if
        :: c_full && c_which == C_HEAD -> head = c_value
        :: c_full && c_which == C_SLEEPS -> consumer_sleeps = c_value
        :: else
        fi;
        c_full = 0
    }
}

/* A later store waits for the earlier one: buffers are in order. */
inline p_store(which, value) { p_flush(); d_step { p_which = which; p_value = value; p_full = 1 } }
inline c_store(which, value) { c_flush(); d_step { c_which = which; c_value = value; c_full = 1 } }

#ifdef NO_FENCE
#define P_FENCE skip
#define C_FENCE skip
#else
#define P_FENCE p_flush()
#define C_FENCE c_flush()
#endif

/* The processors' own flushing, at any time. */
active proctype p_buffer() {
end: do :: atomic { p_full -> p_flush() } od
}

active proctype c_buffer() {
end: do :: atomic { c_full -> c_flush() } od
}

active proctype producer() {
    byte mine = 0;
    byte theirs;
    do
    :: mine < RECORDS ->
        /* wait_for_room() */
        do
        :: theirs = head;
           if
           :: mine - theirs < SIZE -> break
           :: else
           fi;
           p_store(P_SLEEPS, 1);
           P_FENCE;
           if
           :: head == theirs ->
               /* futex: compares and queues in one step, with the store buffer drained by the system call */
               p_flush();
               if
               :: atomic { head == theirs -> producer_waits = 1 };
                  !producer_waits /* woken */
               :: head != theirs
               fi
           :: else
           fi;
           p_store(P_SLEEPS, 0)
        od;
        mine++;
        p_store(P_TAIL, mine);
        P_FENCE;
        if
        :: consumer_sleeps ->
            p_flush();
            /* exchange: whoever takes the flag down makes the system call. The bell moves after that: a sleep whose
             * flag was taken down by a late wake for an earlier one must not go unnoticed (Spin finds it). */
            if
            :: atomic { consumer_sleeps -> consumer_sleeps = 0 }; bell++; consumer_waits = 0
            :: else
            fi
        :: else
        fi
    :: else -> break
    od;
    p_flush()
}

inline take() {
    taken++;
    c_store(C_HEAD, taken);
    C_FENCE;
    /* wakes when half of the ring is free; what it knows to be in it is tail - taken */
    if
    :: producer_sleeps && tail - taken <= SIZE / 2 -> c_flush(); producer_waits = 0
    :: else
    fi
}

inline sleep_on_bell() {
    if
    :: atomic { bell == seen_bell -> consumer_waits = 1 };
       !consumer_waits
    :: bell != seen_bell
    fi
}

active proctype consumer() {
    byte seen_bell;
    do
    :: taken < RECORDS ->
        seen_bell = bell;
        if
        :: tail != taken -> take()
        :: else ->
            c_store(C_SLEEPS, 1);
            C_FENCE;
            if
            :: tail == taken -> c_flush(); sleep_on_bell()
            :: else
            fi;
            c_store(C_SLEEPS, 0)
        fi
    :: else -> break
    od;
    assert(taken == RECORDS)
}
