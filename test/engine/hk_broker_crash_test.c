/* The power fails, or the process is killed, at any moment of a broker's life; and again. What was acknowledged as synced is there
 * until its FREE was sent, and gone when that was acknowledged as synced. */
#include "hk_broker_fixture.h"
#include "hk_disk.h"

enum { MOST = 600, NEVER = -1 };

/* When, in changes of the disk; NEVER. */
typedef struct fate {
    long synced, free_sent, free_synced;
    uint64_t delivery;
    bool seen; /* after the crash */
} fate_t;

typedef struct life {
    hk_disk_t *disk;
    world_t world;
    client_t sender, receiver;
    fate_t fates[MOST];
    uint64_t sent;
} life_t;

static hk_status_t start(life_t *life)
{
    hk_broker_options_t options = {.path = "folder",
                                   .files = &life->disk->files,
                                   .segment_bytes = HK_JOURNAL_SEGMENT_LEAST,
                                   .open = true,
                                   .max_memory = 64 * 1024,
                                   .max_failures = 1000,
                                   .max_crashes = 1000,
                                   .secret = {1, 2}};
    hk_status_t status = world_try(&life->world, &options);
    if (status == HK_OK) {
        client_open(&life->world, &life->sender, "sender", 1 + (uint64_t)life->world.now);
        client_open(&life->world, &life->receiver, NULL, 0);
    }
    return status;
}

static void begin(life_t *life)
{
    memset(life, 0, sizeof(*life));
    life->disk = hk_disk_new();
    life->disk->random_state = hk_test_random();
    for (int i = 0; i < MOST; i++) {
        life->fates[i] = (fate_t){.synced = NEVER, .free_sent = NEVER, .free_synced = NEVER};
    }
    HK_CHECK_OK(start(life));
    client_subscribe(&life->receiver, 1, "q", 40);
}

static uint64_t number_of(hk_bytes_t payload)
{
    uint64_t number = 0;
    for (size_t i = 0; i < payload.length && payload.at[i] != ' '; i++) {
        number = number * 10 + (uint64_t)(payload.at[i] - '0');
    }
    HK_CHECK(number < MOST);
    return number;
}

static void listen_to(life_t *life)
{
    hk_frame_t frame;
    while (client_next(&life->sender, &frame)) {
        if (frame.type == HK_FRAME_ACK && frame.bytes.at[16] == HK_FRAME_SEND) {
            uint64_t last = frame.flags & HK_ACK_RANGE ? hk_frame_u64(frame.bytes.at + 32) : frame.id;
            for (uint64_t id = frame.id; id <= last; id++) {
                HK_CHECK_EQUAL_INT(HK_LEVEL_SYNCED, frame.bytes.at[17]);
                life->fates[id].synced = (long)life->disk->count;
            }
        }
    }
    while (client_next(&life->receiver, &frame)) {
        if (frame.type == HK_FRAME_PUSH) {
            push_t push = read_push(&frame);
            life->fates[number_of(push.payload)].delivery = push.delivery;
        } else if (frame.type == HK_FRAME_ACK && frame.bytes.at[16] == HK_FRAME_FREE) {
            life->fates[frame.id].free_synced = (long)life->disk->count;
        }
    }
}

static void send_one(life_t *life)
{
    if (life->sent + 1 < MOST) {
        char payload[1501] = {0};
        uint64_t number = ++life->sent;
        memset(payload, 'x', 100 + hk_test_below(1300));
        int length = snprintf(payload, 16, "%u ", (unsigned)number);
        payload[length] = 'x';
        /* Some stay for long, so that segments are evacuated. */
        client_send(&life->sender, number, number % 17 == 0 ? "kept" : "q", payload,
                    &(sending_t){.level = HK_LEVEL_SYNCED, .sequence = number});
    }
}

static void settle_one(life_t *life)
{
    uint64_t number = 1 + hk_test_below(life->sent + 1);
    for (uint64_t tries = 0; tries < 8 && number < MOST; tries++, number++) {
        fate_t *fate = &life->fates[number];
        if (fate->delivery == 0) {
            continue;
        }
        if (hk_test_below(6) == 0) {
            client_nack(&life->receiver, 0, fate->delivery, (uint8_t)hk_test_below(2), 0, "");
        } else {
            fate->free_sent = (long)life->disk->count;
            client_free(&life->receiver, number, fate->delivery, fate->delivery, 3);
        }
        fate->delivery = 0;
        return;
    }
}

/* A turn in which what may take long is done, or only begun. */
static void turn(life_t *life)
{
    world_t *world = &life->world;
    world->no_jobs = hk_test_below(3) == 0;
    world_turn(world);
    world->no_jobs = false;
    listen_to(life);
}

static void live(life_t *life, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        switch (hk_test_below(8)) {
        case 0:
        case 1:
        case 2:
            send_one(life);
            break;
        case 3:
        case 4:
        case 5:
            settle_one(life);
            break;
        default:
            turn(life);
        }
    }
}

static void end(life_t *life)
{
    (void)world_end(&life->world, false);
    hk_disk_free(life->disk);
}

/* Everything that there is after a crash at this moment. */
static void look(life_t *after, const fate_t *fates, uint64_t sent, long changes)
{
    client_t *receiver = &after->receiver;
    client_subscribe(receiver, 1, "q", 100000);
    client_subscribe(receiver, 2, "kept", 100000);
    uint64_t low = after->sender.low;
    hk_frame_t frame;
    world_turn(&after->world);
    for (int quiet = 0; quiet < 3;) {
        quiet++;
        while (client_next(receiver, &frame)) {
            quiet = 0;
            HK_CHECK_EQUAL_INT(HK_FRAME_PUSH, frame.type);
            push_t push = read_push(&frame);
            fate_t *fate = &after->fates[number_of(push.payload)];
            HK_CHECK(!fate->seen || (push.flags & HK_PUSH_AGAIN) != 0);
            fate->seen = true;
            client_free(receiver, 0, push.delivery, push.delivery, 0);
        }
        world_turn(&after->world);
    }
    for (uint64_t number = 1; number <= sent; number++) {
        const fate_t *fate = &fates[number];
        bool is_synced = fate->synced != NEVER && fate->synced <= changes;
        bool free_sent = fate->free_sent != NEVER && fate->free_sent < changes;
        bool free_synced = fate->free_synced != NEVER && fate->free_synced <= changes;
        if (is_synced && !free_sent && !after->fates[number].seen) {
            HK_FAIL("message %d was acknowledged as synced, and is lost", (int)number);
        }
        if (free_synced && after->fates[number].seen) {
            HK_FAIL("message %d was done with, and comes back", (int)number);
        }
    }
    HK_CHECK(low <= sent);
}

static void crash(const life_t *before, size_t changes, uint64_t seed)
{
    static life_t after;
    memset(&after, 0, sizeof(after));
    hk_test_note("cut after %zu of %zu, seed %llu", changes, before->disk->count, (unsigned long long)seed);
    after.disk = hk_disk_cut(before->disk, changes, seed);
    after.world.now = before->world.now + SECOND;
    after.world.wall = before->world.wall + 1000;
    HK_CHECK_OK(start(&after));
    look(&after, before->fates, before->sent, (long)changes);
    end(&after);
}

static uint64_t seed_of(size_t turn)
{
    return turn < 2 ? turn : hk_test_random() | 2;
}

HK_TEST(what_was_acknowledged_as_synced_survives_a_power_cut_at_any_moment)
{
    static life_t life;
    for (int history = 0; history < 6; history++) {
        begin(&life);
        live(&life, 700);
        for (size_t changes = hk_test_below(7); changes <= life.disk->count; changes += 1 + hk_test_below(9)) {
            crash(&life, changes, seed_of(changes % 5));
        }
        end(&life);
    }
}

HK_TEST(and_another_one_in_the_life_that_followed)
{
    static life_t life, next;
    for (int history = 0; history < 12; history++) {
        begin(&life);
        live(&life, 500);
        size_t changes = life.disk->count - hk_test_below(20);
        memset(&next, 0, sizeof(next));
        memcpy(next.fates, life.fates, sizeof(next.fates));
        next.sent = life.sent;
        next.disk = hk_disk_cut(life.disk, changes, seed_of((size_t)history % 4));
        next.world.now = life.world.now + SECOND;
        next.world.wall = life.world.wall + 1000;
        HK_CHECK_OK(start(&next));
        for (uint64_t number = 1; number <= next.sent; number++) {
            fate_t *fate = &next.fates[number];
            bool stays = fate->synced != NEVER && fate->synced <= (long)changes &&
                         (fate->free_sent == NEVER || fate->free_sent >= (long)changes);
            bool stays_gone = fate->free_synced != NEVER && fate->free_synced <= (long)changes;
            *fate = (fate_t){
                .synced = stays ? 0 : NEVER, .free_sent = stays ? NEVER : 0, .free_synced = stays_gone ? 0 : NEVER};
        }
        client_subscribe(&next.receiver, 1, "q", 40);
        live(&next, 300);
        for (int again = 0; again < 15; again++) {
            crash(&next, hk_test_below(next.disk->count + 1), seed_of((size_t)again % 4));
        }
        end(&next);
        end(&life);
    }
}

HK_TEST(a_system_call_that_fails_ends_the_storage_and_loses_nothing)
{
    static life_t life;
    static const int errors[] = {EIO, ENOSPC, 0};
    for (size_t error = 0; error < 3; error++) {
        for (long call = 1; call < 120; call += 1 + (long)hk_test_below(3)) {
            begin(&life);
            life.disk->fail_at = call;
            life.disk->error = errors[error];
            for (int i = 0; i < 200 && hk_broker_trouble(life.world.broker) == NULL; i++) {
                live(&life, 1);
            }
            long count = (long)life.disk->count;
            life.disk->fail_at = 0;
            crash(&life, (size_t)count, 1);
            end(&life);
        }
    }
}
