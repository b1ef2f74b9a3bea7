/* Settlement, spool and crash of docs/delivery.md as a model for Spin, which searches every run of it.
 *
 * A source sends MESSAGES messages through one gateway to two targets, while FAULTS faults happen: the gateway crashes, the source
 * reconnects, or the connection of a target is lost. Every rule is one step, so a fault can happen between any two.
 *
 * An id is one receipt of a message: a message that the source delivers again gets a new id. Ids grow in the order of receipt,
 * and are the numbers of the spool's rows. A `short` is a set of ids, or of messages if its comment says so; [2] is by target.
 *
 * Options: IDENTITY (the source gives message ids), SPOOL, REJECTS (the second target may reject the first message), BOTH (the
 * connections of both targets are lost, not only the first one's). BREAK=RULE breaks one rule, and the search must find that. */
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef FAULTS
#define FAULTS 1                      /* at most 2 */
#endif
#ifndef IDENTITY
#define IDENTITY 0
#endif
#ifndef SPOOL
#define SPOOL 1
#endif
#ifndef REJECTS
#define REJECTS 1
#endif
#ifndef BOTH
#define BOTH 0
#endif
#ifndef BREAK
#define BREAK 0
#endif
#define SETTLED_BEFORE_ROWS 1
#define SPOOLED_BEFORE_DURABLE 2
#define ROWS_BEFORE_LETTERS 3
#define DELETED_BEFORE_ROWS 4
#define SENT_BEFORE_MARK 5            /* also the effect of a wait for the mark that times out */
#define ATTEMPTS_NOT_STORED 6
#define DIRECT_BEFORE_BACKLOG 7
#define NEWER_BEFORE_PUT_BACK 8
#define NOT_PUT_BACK 9
#define RECEIPT_ONLY_OF_INHERITED 10
#define RECEIPT_NOT_REPEATED 11
#define DROPPED_BEFORE_ROWS 12
#define kept(rule, guard) (BREAK == rule || (guard))
#define if_kept(rule, ids) (BREAK == rule -> 0 : (ids))
#define if_broken(rule, ids) (BREAK == rule -> (ids) : 0)

#define ALL ((1 << MESSAGES) - 1)
#define FIRST(ids) ((ids) & -(ids))
#define UP_TO(id) ((id) | ((id) - 1))
#define MESSAGES_OF(ids) (((ids) | (ids) >> MESSAGES | (ids) >> 2 * MESSAGES) & ALL)

/* The brokers, and facts for the properties. An epoch begins when the source delivers again from its first unsettled message. */
byte faults = FAULTS, epoch, next;
short settled, given, again;                   /* messages: acknowledged; delivered before; ids: marked as `redelivered` */
short seen[2], refused_once[2];                /* messages: arrived at the target; rejected by it */
bool repeats[2];                               /* whether an answer was lost, or the source delivered again */
/* The disks: the spool and its mark `handed`, then messages: with a dead letter, an archived receipt, an archived outcome. */
short row[2], row_tried[2], handed[2];         /* row_tried: with an attempt before it was stored, or in an earlier run */
short dead_letter[2], received_row, outcome_row[2];
short unknown[2];                              /* rows of the spool, also deleted ones, whose receipt is not in the archive */
/* The memory of the gateway. */
mtype = { away, draining, direct, broken };
mtype lane[2];
short open, recorded, held;                    /* received batches; with durable rows; duplicates */
short accepted[2], spooled[2], rejected[2];    /* outcomes of their copies */
short inserts[2], deletes[2], letter[2];       /* changes that wait for the spool's disk; dead letters that are on it */
short ready[2], passed[2], inherited[2];       /* copies to send; the reading cursor; rows of an earlier run */
short sent[2], arrived[2], refused[2];         /* unanswered copies: on the way; accepted; rejected */
short tried[2], retried[2];                    /* unanswered copies that were sent; that were sent more than once */
short answered[2], dead[2];                    /* spooled copies that were accepted; that were rejected */
short id; byte each;                           /* zero between two steps */

#define connected(t) (lane[t] == draining || lane[t] == direct)
#define unread(t) (row[t] & ~passed[t])
#define unlettered(t) if_kept(ROWS_BEFORE_LETTERS, (rejected[t] | dead[t]) & ~letter[t])
#define outcomes(t) ((accepted[t] | spooled[t] | rejected[t]) & ~unlettered(t))
#define complete (open & outcomes(0) & outcomes(1))
#define ended(t) ((answered[t] | dead[t]) & ~unlettered(t))
#define settleable (recorded | if_broken(SETTLED_BEFORE_ROWS, complete))
#define deletable(t) (deletes[t] | if_broken(DELETED_BEFORE_ROWS, answered[t]))
#define safe(t) (MESSAGES_OF(id) & (seen[t] | dead_letter[t] | MESSAGES_OF(row[t])))

inline move(from, to) { from = from & ~id; to = to | id }
inline done() { id = 0; each = 0 }

/* "Order": a copy is sent at once while nothing waits before it, else it goes behind the backlog (Lane.deliver). */
inline deliver(t) {
    if
    :: lane[t] == direct -> sent[t] = sent[t] | id; tried[t] = tried[t] | id
    :: lane[t] != direct && !SPOOL -> ready[t] = ready[t] | id
    :: else -> inserts[t] = inserts[t] | id; spooled[t] = spooled[t] | if_broken(SPOOLED_BEFORE_DURABLE, id)
    fi
}

/* "Settlement" 1 and "Duplicates": the pump of the source (Pump._relay, Admission.recognise). */
proctype Pump() {
end: do
    :: d_step { next < MESSAGES && (settled >> next & 1) -> next++ }
    :: d_step { next < MESSAGES && !(settled >> next & 1) &&
        kept(NEWER_BEFORE_PUT_BACK, lane[0] != broken && lane[1] != broken) ->
        id = 1 << (epoch * MESSAGES + next);
        again = again | (given >> next & 1 -> id : 0); given = given | 1 << next;
        if  /* a duplicate is dropped, also after a restart (DuplicateFilter, dedup_recovery.recover), */
        :: IDENTITY && ((MESSAGES_OF(open) | received_row | if_broken(DROPPED_BEFORE_ROWS, MESSAGES_OF(again))) >> next & 1) ->
            held = held | id
        :: else -> open = open | id; deliver(0); deliver(1)
        fi;
        next++; done() }
    :: d_step { held && kept(DROPPED_BEFORE_ROWS, MESSAGES_OF(FIRST(held)) & received_row) ->
        id = FIRST(held); move(held, recorded); done() }  /* and settled no sooner than the first one */
od }

/* "Order" and "Spool": the lane of a target with its backlog (Lane, Spool). */
proctype Lane(byte t) {
end: do
    :: d_step { lane[t] == broken ->  /* all unanswered copies are sent again first (Lane._put_back_unanswered, Spool.put_back) */
        id = if_kept(NOT_PUT_BACK, sent[t] | arrived[t] | refused[t]);
        sent[t] = 0; arrived[t] = 0; refused[t] = 0; lane[t] = away;
        ready[t] = ready[t] | (SPOOL -> id & row[t] : id);
        inserts[t] = inserts[t] | (SPOOL -> id & ~row[t] : 0); done() }
    :: d_step { lane[t] == away -> lane[t] = draining }  /* Lane._connect */
    :: d_step { lane[t] == draining && !ready[t] && unread(t) ->  /* rows are sent after the mark is durable (Spool._read) */
        ready[t] = unread(t); tried[t] = tried[t] | (unread(t) & row_tried[t]);
        do :: unread(t) -> passed[t] = passed[t] | UP_TO(FIRST(unread(t))) :: else -> break od;
        handed[t] = handed[t] | if_kept(SENT_BEFORE_MARK, ready[t]) }
    :: d_step { lane[t] == draining && ready[t] -> id = FIRST(ready[t]); move(ready[t], sent[t]);  /* Lane._send_queued */
        retried[t] = retried[t] | (id & tried[t]); tried[t] = tried[t] | id; done() }
    :: d_step { lane[t] == draining && kept(DIRECT_BEFORE_BACKLOG, !ready[t] && !inserts[t] && !unread(t)) ->
        lane[t] = direct }  /* Lane._switch_to_direct */
    :: d_step { connected(t) && (arrived[t] | refused[t]) ->  /* Lane._answered, InFlightBatch.answered */
        id = FIRST(arrived[t] | refused[t]); tried[t] = tried[t] & ~id; retried[t] = retried[t] & ~id;
        if
        :: (id & row[t]) && (id & arrived[t]) -> move(arrived[t], answered[t])
        :: (id & row[t]) && (id & refused[t]) -> move(refused[t], dead[t])
        :: !(id & row[t]) && (id & arrived[t]) -> move(arrived[t], accepted[t])
        :: else -> move(refused[t], rejected[t])
        fi; done() }
od }

/* The broker of a target takes copies in the order of sending. */
proctype Target(byte t) {
end: do
    :: d_step { connected(t) && sent[t] -> id = FIRST(sent[t]); each = MESSAGES_OF(id);
        if
        :: seen[t] & each ->
            assert(repeats[t]);                   /* a double arrives only after a crash or a lost answer, */
            assert(id & (retried[t] | again))     /* and is marked: `attempt` 2 or more, or `redelivered` */
        :: else ->
            assert(!((each - 1) & ~(seen[t] | refused_once[t])))  /* "Order" of first arrivals */
        fi;
        seen[t] = seen[t] | each; move(sent[t], arrived[t]); done() }
    :: d_step { REJECTS && t == 1 && connected(t) && (MESSAGES_OF(FIRST(sent[t])) & 1) ->
        id = FIRST(sent[t]); refused_once[t] = 1; move(sent[t], refused[t]); done() }
od }

/* The disk of the spool; changes of one kind become durable in order (SpoolDatabase, DeadLetters.put). */
proctype Disk(byte t) {
end: do
    :: d_step { inserts[t] -> id = FIRST(inserts[t]); move(inserts[t], row[t]);
        spooled[t] = spooled[t] | (id & open); unknown[t] = unknown[t] | id;
        row_tried[t] = row_tried[t] | if_kept(ATTEMPTS_NOT_STORED, id & tried[t]);
        tried[t] = tried[t] & ~id; retried[t] = retried[t] & ~id; done() }
    :: d_step { (rejected[t] | dead[t]) & ~letter[t] -> id = FIRST((rejected[t] | dead[t]) & ~letter[t]);
        letter[t] = letter[t] | id; dead_letter[t] = dead_letter[t] | MESSAGES_OF(id); done() }
    :: d_step { deletable(t) -> id = FIRST(deletable(t));
        assert(MESSAGES_OF(id) & outcome_row[t]);                 /* a row stays until its outcome is in the archive */
        deletes[t] = deletes[t] & ~id; row[t] = row[t] & ~id; row_tried[t] = row_tried[t] & ~id;
        handed[t] = handed[t] & ~id; inherited[t] = inherited[t] & ~id; done() }
od }

/* The rows of a received batch, and of an outcome that was spooled: outcomes follow their dead letters. */
inline record(t, done_ids, dead_ids) {
    assert(!(MESSAGES_OF(id & dead_ids) & ~dead_letter[t]));
    outcome_row[t] = outcome_row[t] | MESSAGES_OF(id & (done_ids | dead_ids));
    done_ids = done_ids & ~id; dead_ids = dead_ids & ~id; letter[t] = letter[t] & ~id
}
inline record_batch(t) { unknown[t] = unknown[t] & ~id; spooled[t] = spooled[t] & ~id; record(t, accepted[t], rejected[t]) }
/* BatchRecorder.record_spooled; a crash may precede the rows of the batch, so the receipt is recorded again. */
inline record_spooled(t) {
    id = FIRST(ended(t)); deletes[t] = deletes[t] | id; record(t, answered[t], dead[t]);
    unknown[t] = unknown[t] & ~(BREAK == RECEIPT_ONLY_OF_INHERITED -> id & inherited[t] : if_kept(RECEIPT_NOT_REPEATED, id)); done()
}

/* "Settlement" 3: dead letters, archive rows, then settlement or deletion (BatchRecorder.write, ArchiveWriter, InFlightBatch). */
proctype Ledger() {
end: do
    :: d_step { complete -> id = FIRST(complete); move(open, recorded); received_row = received_row | MESSAGES_OF(id);
        record_batch(0); record_batch(1); done() }
    :: d_step { ended(0) -> record_spooled(0) }
    :: d_step { ended(1) -> record_spooled(1) }
    :: d_step { settleable -> id = FIRST(settleable); recorded = recorded & ~id;
        if
        :: id >> epoch * MESSAGES ->              /* a connection that was given up settles nothing */
            assert(safe(0) && safe(1) && (MESSAGES_OF(id) & received_row));  /* durable before settled */
            settled = settled | MESSAGES_OF(id)
        :: else
        fi; done() }
od }

/* A lost connection loses the copies on the way, and the answers. */
inline lose(t) { faults--; repeats[t] = repeats[t] || arrived[t]; lane[t] = broken }
inline deliver_again() { faults--; epoch++; next = 0; repeats[0] = true; repeats[1] = true }
/* A start reads the spool. The mark says which rows an earlier run may have sent (Spool.__init__). */
inline start(t) {
    accepted[t] = 0; spooled[t] = 0; rejected[t] = 0; inserts[t] = 0; deletes[t] = 0; letter[t] = 0; ready[t] = 0; passed[t] = 0;
    sent[t] = 0; arrived[t] = 0; refused[t] = 0; tried[t] = 0; retried[t] = 0; answered[t] = 0; dead[t] = 0;
    inherited[t] = if_broken(RECEIPT_ONLY_OF_INHERITED, row[t]); row_tried[t] = row_tried[t] | handed[t];
    lane[t] = (BOTH || t == 0 -> away : direct)
}

proctype Faults() {
end: do
    :: d_step { faults -> deliver_again() }                                             /* the source reconnects */
    :: d_step { faults -> deliver_again(); open = 0; recorded = 0; held = 0; start(0); start(1) }  /* a crash and a start */
    :: d_step { faults && connected(0) -> lose(0) }
    :: d_step { faults && BOTH && connected(1) -> lose(1) }
od }

/* At the end of every run each message has its outcome at each target, in the archive too, and the spool is empty. */
inline check(t) {
    assert((seen[t] | dead_letter[t]) == ALL && outcome_row[t] == ALL && !row[t]);
    assert(!unknown[t])                                                                 /* no outcome without a receipt */
}
proctype End() { timeout; d_step { assert(!faults && settled == ALL); check(0); check(1) } }

init { atomic {
    start(0); start(1); run Pump(); run Lane(0); run Lane(1); run Target(0); run Target(1); run Disk(0); run Disk(1);
    run Ledger(); run Faults(); run End()
} }
