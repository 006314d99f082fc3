#include "base/counters.h"

struct totals totals;
