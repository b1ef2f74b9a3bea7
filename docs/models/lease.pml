/* The lease of docs/pairs.md as a model for Spin, which searches every run of it.
 *
 * Two instances take, renew, lose and give away the lease of one store, up to LEASES times. A process may be frozen between any
 * two steps, for any time: it takes no step. It may end at any step, and start again. A request reaches the store, and its answer
 * comes back, after any time, or never. Time is a number of ticks, which both clocks count; once in DRIFT ticks one of them may
 * miss one. No clock stops while a process is frozen. An instance is 0 or 1, and a [2] is by instance.
 *
 * Options: KUBERNETES (the store compares and writes in one step, by resource version), else the store is a folder. LIVE: from some
 * moment on, one instance at most is dead, nothing else fails, and time waits for steps that are due. BREAK=RULE breaks one rule,
 * and the search must find that. */
#ifndef SECONDS
#define SECONDS 6                     /* ticks of a lease: `standby.seconds` */
#endif
#ifndef MARGIN
#define MARGIN 1                      /* ticks by which a holder stops early */
#endif
#ifndef DRIFT
#define DRIFT SECONDS
#endif
#ifndef LEASES
#define LEASES 3
#endif
#ifndef KUBERNETES
#define KUBERNETES 0
#endif
#ifndef LIVE
#define LIVE 0
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define RENEWED_FROM_ANSWER 1         /* a renewal counts from its answer, not from the question */
#define TAKEN_FROM_ANSWER 2           /* and so does a lease that was taken */
#define WAITED_FROM_FIRST_LOOK 3      /* a standby counts from its first look, not from the last change that it saw */
#define CHECKED_BEFORE_LAST_STEP 4    /* a process may be frozen between the check and the hand-over */
#define TAKEN_NOT_EXCLUSIVELY 5       /* without O_EXCL, or the resource version */
#define TAKEN_DESPITE_RENEWAL 6       /* no look for a renewal after the next file was made */
#define RENEWED_WITHOUT_LOOK 7        /* no look for a newer file after a renewal; also a look that a cache answers */
#define TAKEN_AGAIN 8                 /* a process that lost its lease takes another one */
#define GIVEN_WHILE_HELD 9            /* the lease is given away before the hand-overs end */
#define EMPTY_FILE_IS_HELD 10         /* a file whose maker died before it wrote its name is never free */
#define kept(rule, guard) (BREAK == rule || (guard))
#define if_kept(rule, value) (BREAK == rule -> 0 : (value))

#define LOOK 1                        /* ticks between two looks */
#define NOBODY 2
#define other (1 - i)

/* The store: the last number, its holder, whether that gave it away. */
byte number, holder = NOBODY; bool given = true;
/* An instance: its request; what it saw last (Lease.record), whether its file was written since, whether and how long it waits. */
mtype = { idle, looking, looked, taking, making, made, took, renewing, writing, wrote, renewed, refused, giving, gave, over, dead };
mtype phase[2] = idle;
byte seen[2], waited[2]; bool seen_given[2], changed[2], known[2];
byte mine[2], left[2], age[2], pause[2];       /* its number; ticks until its end, since its question, until the next one */
byte term[2]; bool leaving[2], checked[2];     /* the number with which its gateway started */
byte highest, steady = DRIFT; bool calm;       /* the highest `term` that handed over; ticks since a clock missed one */

#define holds(i) (left[i] && kept(GIVEN_WHILE_HELD, !leaving[i]))
#define waited_enough(i) (waited[i] == SECONDS && (BREAK != EMPTY_FILE_IS_HELD || holder != NOBODY))
#define free(i) (known[i] && (seen_given[i] || waited_enough(i)) && (calm || seen[i] < LEASES))
#define ours(i) (number == mine[i] && holder == i)
#define due(i) (phase[i] == idle -> !pause[i] || leaving[i] || mine[i] && !left[i] : phase[i] != dead)
#define asks(i) (taking >= phase[i] && phase[i] >= renewed)                            /* Spin numbers from the last name */
#define less(a, b) ((a) > (b) -> (a) - (b) : 0)

inline next(ticks) { phase[i] = idle; pause[i] = ticks; age[i] = 0 }
inline forget() { seen[i] = 0; seen_given[i] = false; changed[i] = false; known[i] = false; waited[i] = 0; next(0) }
inline lose() { left[i] = 0; mine[i] = 0; forget(); phase[i] = (BREAK == TAKEN_AGAIN -> idle : over) }
inline extend(rule) {                 /* Lease._extend */
    age[i] = (BREAK == rule -> 0 : age[i]); left[i] = less(SECONDS - MARGIN, age[i]);
    forget(); pause[i] = less(SECONDS / 3, SECONDS - MARGIN - left[i])
}
inline write(file) { changed[other] = changed[other] || seen[other] == file }   /* a text that nobody saw before */
inline begin() { left[i] = 0; mine[i] = 0; term[i] = 0; leaving[i] = false; checked[i] = false; forget() }

/* The thread of the lease: Lease.next, LeaseHolder._do, and the steps of the store. */
proctype Holder(byte i) {
end: do
    :: d_step { phase[i] == idle && mine[i] && !left[i] -> lose() }
    :: d_step { phase[i] == idle && leaving[i] && (left[i] || !mine[i]) -> phase[i] = (mine[i] -> giving : over) }
    :: d_step { phase[i] == idle && !leaving[i] && !pause[i] && (left[i] || !mine[i]) ->
        phase[i] = (mine[i] -> renewing : (free(i) -> taking : looking)) }
    /* Look */
    :: d_step { phase[i] == looking -> phase[i] = looked;
        if :: kept(WAITED_FROM_FIRST_LOOK, seen[i] == number && !changed[i]) :: else -> known[i] = false; waited[i] = 0 fi;
        seen[i] = number; seen_given[i] = given; changed[i] = false }
    :: d_step { phase[i] == looked -> known[i] = true; next(LOOK); pause[i] = (free(i) -> 0 : LOOK) }
    /* Take: see it as before, make the next file, see whether the last one was renewed meanwhile, write the name of the holder */
    :: d_step { phase[i] == taking -> phase[i] = (number == seen[i] && !changed[i] -> making : refused) }
    :: d_step { phase[i] == making ->
        if
        :: kept(TAKEN_NOT_EXCLUSIVELY, number == seen[i] && !(KUBERNETES && changed[i])) ->
            number = seen[i] + 1; holder = (KUBERNETES -> i : NOBODY); given = false; phase[i] = (KUBERNETES -> took : made)
        :: else -> phase[i] = refused
        fi }
    :: d_step { phase[i] == made ->
        if
        :: kept(TAKEN_DESPITE_RENEWAL, !changed[i]) ->
            write(seen[i] + 1); holder = (number == seen[i] + 1 -> i : holder); phase[i] = took
        :: else -> phase[i] = refused
        fi }
    :: d_step { phase[i] == took -> mine[i] = seen[i] + 1; extend(TAKEN_FROM_ANSWER) }
    :: d_step { phase[i] == refused -> forget() }
    /* Renew: see whether it is ours, write, see it again */
    :: d_step { phase[i] == renewing && !ours(i) -> lose() }
    :: d_step { phase[i] == renewing && ours(i) && KUBERNETES -> write(number); phase[i] = renewed }
    :: d_step { phase[i] == renewing && ours(i) && !KUBERNETES -> phase[i] = writing }
    :: d_step { phase[i] == writing -> write(mine[i]); phase[i] = wrote }
    :: d_step { phase[i] == wrote && kept(RENEWED_WITHOUT_LOOK, ours(i)) -> phase[i] = renewed }
    :: d_step { phase[i] == wrote && if_kept(RENEWED_WITHOUT_LOOK, !ours(i)) -> lose() }
    :: d_step { phase[i] == renewed -> extend(RENEWED_FROM_ANSWER) }
    /* Give */
    :: d_step { phase[i] == giving -> write(mine[i]); given = given || ours(i); phase[i] = gave }
    :: d_step { phase[i] == gave -> left[i] = 0; phase[i] = over }
    /* The store is away, before or after a step. */
    :: d_step { !calm && phase[i] != idle && phase[i] != over -> next(LOOK); phase[i] = (leaving[i] -> over : idle) }
od }

/* The other threads (`gateway run`, Lane._send): the check is the last step of each hand-over. */
inline hand_over() { assert(!holds(other)); assert(term[i] >= highest); highest = term[i]; checked[i] = false }
proctype Gateway(byte i) {
end: do
    :: d_step { !term[i] && holds(i) -> term[i] = mine[i] }
    :: d_step { term[i] && holds(i) && BREAK != CHECKED_BEFORE_LAST_STEP -> hand_over() }
    :: d_step { term[i] && holds(i) && BREAK == CHECKED_BEFORE_LAST_STEP -> checked[i] = true }
    :: d_step { checked[i] -> hand_over() }
    :: d_step { holds(i) && !calm -> leaving[i] = true }                               /* SIGTERM, `gateway handover` */
    :: d_step { phase[i] != dead && (phase[i] == over || term[i] && !holds(i) || !calm) -> begin() }  /* or `kill -9` */
od }

inline tick(i) {
    left[i] = less(left[i], 1); pause[i] = less(pause[i], 1);
    age[i] = (asks(i) && age[i] < SECONDS -> age[i] + 1 : age[i]);
    waited[i] = (!known[i] || waited[i] == SECONDS -> waited[i] : waited[i] + 1)
}
proctype Time() {
end: do
    :: d_step { !(calm && (due(0) || due(1))) -> tick(0); tick(1); steady = (steady == DRIFT -> DRIFT : steady + 1) }
    :: d_step { !(calm && (due(0) || due(1))) && steady == DRIFT -> tick(0); steady = 0 }
    :: d_step { !(calm && (due(0) || due(1))) && steady == DRIFT -> tick(1); steady = 0 }
    :: d_step { LIVE && !calm -> calm = true; if :: phase[0] = dead :: phase[1] = dead :: skip fi }
od }

/* With LIVE: when one instance dies, the other one holds the lease in the end, and keeps it. */
ltl takes_over { [] (calm -> <> [] (holds(0) || holds(1))) }

init { atomic { run Holder(0); run Holder(1); run Gateway(0); run Gateway(1); run Time() } }
