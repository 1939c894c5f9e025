/* How wide terminals draw a character. Room: base. Context: any; the same in every locale. */
#ifndef MEMLOG_BASE_CHARACTER_WIDTH_H
#define MEMLOG_BASE_CHARACTER_WIDTH_H

#include <stdint.h>

/* Columns of a printable character: 0 (it combines with the one before), 1 or 2. */
unsigned ml_character_width(uint32_t character);

#endif
