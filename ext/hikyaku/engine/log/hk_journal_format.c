#include "hk_journal_private.h"

static const char segment_magic[8] = {0x48, 0x4b, 0x4a, 0x0d, 0x0a, 0x1a, 0x0a, 0x01};
static const char checkpoint_magic[8] = {0x48, 0x4b, 0x43, 0x0d, 0x0a, 0x1a, 0x0a, 0x01};

/* -- Segments ------------------------------------------------------------------------------------------------------ */

void hk_journal_write_header(char header[HK_JOURNAL_HEADER_BYTES], hk_crc32c_t *crc32c, const char *identity,
                             const hk_segment_t *segment)
{
    memcpy(header, segment_magic, 8);
    memcpy(header + 8, identity, HK_JOURNAL_IDENTITY_BYTES);
    hk_journal_put(header + 24, segment->number, 8);
    hk_journal_put(header + 32, segment->first, 8);
    memcpy(header + 40, segment->salt, 8);
    hk_journal_put(header + 48, segment->begun, 8);
    hk_journal_put(header + 56, segment->bytes, 4);
    hk_journal_put(header + 60, crc32c(0, header, 60), 4);
}

hk_status_t hk_journal_read_header(const char header[HK_JOURNAL_HEADER_BYTES], hk_crc32c_t *crc32c, char *identity,
                                   hk_segment_t *segment)
{
    uint64_t bytes = hk_journal_get(header + 56, 4), first = hk_journal_get(header + 32, 8);
    if (memcmp(header, segment_magic, 8) != 0 || hk_journal_get(header + 60, 4) != crc32c(0, header, 60) ||
        bytes < HK_JOURNAL_SEGMENT_LEAST || bytes > HK_JOURNAL_SEGMENT_MOST || bytes % 4096 != 0 || first == 0) {
        return HK_INVALID;
    }
    memcpy(identity, header + 8, HK_JOURNAL_IDENTITY_BYTES);
    segment->number = hk_journal_get(header + 24, 8);
    segment->first = first;
    memcpy(segment->salt, header + 40, 8);
    segment->begun = hk_journal_get(header + 48, 8);
    segment->bytes = (uint32_t)bytes;
    segment->salt_crc = crc32c(0, segment->salt, 8);
    return HK_OK;
}

/* -- Records ------------------------------------------------------------------------------------------------------- */

void hk_journal_write_head(char *record, hk_crc32c_t *crc32c, uint32_t salt_crc, const hk_journal_head_t *head)
{
    hk_journal_put(record, head->length, 4);
    hk_journal_put(record + 8, head->position, 8);
    record[16] = (char)head->type;
    record[17] = (char)head->flags;
    record[18] = record[19] = 0;
    hk_journal_put(record + 20, ~head->length, 4);
    uint64_t used = HK_JOURNAL_RECORD_BYTES + (uint64_t)head->length;
    memset(record + used, 0, hk_journal_size(head->length) - used);
    hk_journal_put(record + 4, crc32c(salt_crc, record + 8, used - 8), 4);
}

bool hk_journal_read_head(const char *record, hk_journal_head_t *head)
{
    head->length = (uint32_t)hk_journal_get(record, 4);
    head->crc = (uint32_t)hk_journal_get(record + 4, 4);
    head->position = hk_journal_get(record + 8, 8);
    head->type = (uint8_t)record[16];
    head->flags = (uint8_t)record[17];
    return hk_journal_get(record + 20, 4) == (uint32_t)~head->length && record[18] == 0 && record[19] == 0;
}

bool hk_journal_verifies(const char *record, hk_crc32c_t *crc32c, uint32_t salt_crc, const hk_journal_head_t *head)
{
    if (crc32c(salt_crc, record + 8, HK_JOURNAL_RECORD_BYTES - 8 + (size_t)head->length) != head->crc) {
        return false;
    }
    switch (head->type) {
    case HK_JOURNAL_MARK:
    case HK_JOURNAL_END:
    case HK_JOURNAL_CLOSE:
        return head->length == 16;
    case HK_JOURNAL_DROPPED:
    case HK_JOURNAL_SKIP:
        return head->length % 8 == 0;
    default:
        return head->type >= HK_JOURNAL_OF_LOG;
    }
}

/* -- Checkpoints --------------------------------------------------------------------------------------------------- */

void hk_journal_write_checkpoint(char *bytes, hk_crc32c_t *crc32c, const hk_checkpoint_t *checkpoint)
{
    size_t size = HK_JOURNAL_CHECKPOINT_BYTES + 8 * (size_t)checkpoint->dropped_count;
    memcpy(bytes, checkpoint_magic, 8);
    memcpy(bytes + 8, checkpoint->identity, HK_JOURNAL_IDENTITY_BYTES);
    hk_journal_put(bytes + 24, checkpoint->synced, 8);
    hk_journal_put(bytes + 32, checkpoint->newest, 8);
    hk_journal_put(bytes + 40, checkpoint->first, 8);
    hk_journal_put(bytes + 48, checkpoint->when, 8);
    hk_journal_put(bytes + 56, checkpoint->dropped_count, 4);
    hk_journal_put(bytes + size - 4, crc32c(0, bytes, size - 4), 4);
}

hk_status_t hk_journal_read_checkpoint(const char *bytes, size_t size, hk_crc32c_t *crc32c, hk_checkpoint_t *checkpoint)
{
    if (size < HK_JOURNAL_CHECKPOINT_BYTES || memcmp(bytes, checkpoint_magic, 8) != 0 ||
        hk_journal_get(bytes + 56, 4) * 8 != size - HK_JOURNAL_CHECKPOINT_BYTES ||
        hk_journal_get(bytes + size - 4, 4) != crc32c(0, bytes, size - 4)) {
        return HK_INVALID;
    }
    memcpy(checkpoint->identity, bytes + 8, HK_JOURNAL_IDENTITY_BYTES);
    checkpoint->synced = hk_journal_get(bytes + 24, 8);
    checkpoint->newest = hk_journal_get(bytes + 32, 8);
    checkpoint->first = hk_journal_get(bytes + 40, 8);
    checkpoint->when = hk_journal_get(bytes + 48, 8);
    checkpoint->dropped_count = (uint32_t)hk_journal_get(bytes + 56, 4);
    checkpoint->dropped = bytes + 60;
    return HK_OK;
}

/* -- Names --------------------------------------------------------------------------------------------------------- */

void hk_journal_segment_name(uint64_t number, char name[HK_JOURNAL_NAME_BYTES])
{
    snprintf(name, HK_JOURNAL_NAME_BYTES, "journal-%020llu.seg", (unsigned long long)number);
}

void hk_journal_spare_name(uint64_t number, char name[HK_JOURNAL_NAME_BYTES])
{
    snprintf(name, HK_JOURNAL_NAME_BYTES, "spare-%020llu.tmp", (unsigned long long)number);
}

static bool is_numbered(const char *name, const char *before, const char *after, uint64_t *number)
{
    size_t length = strlen(before);
    if (strncmp(name, before, length) != 0) {
        return false;
    }
    uint64_t value = 0;
    for (int digits = 0; digits < 20; digits++, length++) {
        unsigned digit = (unsigned)(unsigned char)name[length] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *number = value;
    return value > 0 && strcmp(name + length, after) == 0;
}

bool hk_journal_is_segment(const char *name, uint64_t *number)
{
    return is_numbered(name, "journal-", ".seg", number);
}

bool hk_journal_is_spare(const char *name, uint64_t *number)
{
    return is_numbered(name, "spare-", ".tmp", number);
}

/* -- Trouble ------------------------------------------------------------------------------------------------------- */

const char *hk_journal_error_name(int error)
{
    static const struct {
        int error;
        char name[16];
    } names[] = {
        {EIO, "EIO"},       {ENOSPC, "ENOSPC"}, {EDQUOT, "EDQUOT"}, {EROFS, "EROFS"},     {EACCES, "EACCES"},
        {EPERM, "EPERM"},   {ENOENT, "ENOENT"}, {EEXIST, "EEXIST"}, {ENOTDIR, "ENOTDIR"}, {EMFILE, "EMFILE"},
        {ENFILE, "ENFILE"}, {ENOMEM, "ENOMEM"}, {EFBIG, "EFBIG"},   {EBADF, "EBADF"},     {EINVAL, "EINVAL"},
        {ENODEV, "ENODEV"}, {ENXIO, "ENXIO"},   {ESTALE, "ESTALE"}, {ENOLCK, "ENOLCK"},   {EISDIR, "EISDIR"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].error == error) {
            return names[i].name;
        }
    }
    return "";
}

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "make room on the disk, then start again";
    case EACCES:
    case EPERM:
    case EROFS:
        return "see that this user may write to the folder and what is in it, then start again";
    case ENOENT:
    case ENOTDIR:
        return "see that the folder is there, then start again";
    case EMFILE:
    case ENFILE:
        return "allow more open files, then start again";
    default:
        return "see what the kernel's log says about the disk, then start again";
    }
}

hk_status_t hk_journal_say(hk_journal_trouble_t *trouble, const char *call, const char *name, int error)
{
    const char *known = hk_journal_error_name(error);
    char number[24];
    snprintf(number, sizeof(number), "error %d", error);
    trouble->error = error;
    trouble->offset = 0;
    snprintf(trouble->segment, sizeof(trouble->segment), "%s", name);
    snprintf(trouble->text, sizeof(trouble->text), "%s of %s failed (%s): %s", call, name[0] != 0 ? name : "the folder",
             known[0] != 0 ? known : number, advice(error));
    return HK_SYSTEM;
}

hk_status_t hk_journal_lose(hk_journal_t *journal, const char *lost, const char *name)
{
    if (!journal->failed) {
        journal->failed = true;
        journal->trouble.error = ENOENT;
        journal->trouble.offset = 0;
        snprintf(journal->trouble.segment, sizeof(journal->trouble.segment), "%s", name);
        snprintf(journal->trouble.text, sizeof(journal->trouble.text),
                 "%s %s: what was written there may be gone; put back what was there, then start again",
                 name[0] != 0 ? name : "the folder", lost);
    }
    return HK_SYSTEM;
}

hk_status_t hk_journal_fail(hk_journal_t *journal, const char *call, const char *name, int error)
{
    /* What came first is what matters. */
    if (!journal->failed) {
        journal->failed = true;
        hk_journal_say(&journal->trouble, call, name, error);
    }
    return HK_SYSTEM;
}
