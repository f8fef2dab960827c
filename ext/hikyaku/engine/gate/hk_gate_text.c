#include "hk_gate_private.h"

/* The format characters of Unicode 17 (general category Cf), and the controls beyond ASCII: from and to. */
static const uint32_t forbidden[][2] = {
    {0x80, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},
    {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},   {0x200B, 0x200F},
    {0x202A, 0x202E},   {0x2060, 0x2064},   {0x2066, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},
    {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
    {0xE0001, 0xE0001}, {0xE0020, 0xE007F},
};

static bool is_forbidden(uint32_t character)
{
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++) {
        if (character >= forbidden[i][0] && character <= forbidden[i][1]) {
            return true;
        }
    }
    return character < 0x20 || character == 0x7F;
}

/* Takes a character off text that is valid UTF-8. */
static uint32_t next_character(hk_bytes_t *text)
{
    unsigned char first = (unsigned char)text->at[0];
    size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    uint32_t character = length == 1 ? first : first & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        character = character << 6 | ((unsigned char)text->at[i] & 0x3F);
    }
    *text = hk_bytes(text->at + length, text->length - length);
    return character;
}

bool hk_gate_text(hk_bytes_t text)
{
    if (hk_bytes_printable(text)) {
        return true;
    }
    if (!hk_bytes_utf8(text)) {
        return false;
    }
    while (text.length > 0) {
        if (is_forbidden(next_character(&text))) {
            return false;
        }
    }
    return true;
}
