/* SPDX-License-Identifier: MIT
 *
 * tlb_tool.c: a tool for valgrind that passes each data access of a program to the simulated TLB
 * (tlb.h), after the access has been made: its page is there then, and the kernel says which size
 * it has.  At exit each process writes one line of counts.
 *
 * It is linked on this machine with the libraries that Debian's valgrind brings for this, which are
 * under the GPL. */
#include "tlb.h"

#include "pub_tool_basics.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

/* The core's, declared in none of the headers for tools. */
extern Int VG_(safe_fd)(Int file);
extern SysRes VG_(do_syscall)(UWord number, UWord, UWord, UWord, UWord, UWord, UWord, UWord, UWord);

/* Linux's PAGEMAP_SCAN, since 6.7. */
struct page_range {
  uint64_t start, end, categories;
};
struct page_scan {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
enum { SCAN_REQUEST = 0xC0606610u, CATEGORY_HUGE = 1 << 6, PAGE_BYTES = 1 << SMALL_SHIFT };

static struct tlb tlb;
static ULong instructions;
static ULong failures; /* of the kernel to say how large a page is */
static Int pagemap;

static bool is_huge(uintptr_t address) {
  struct page_range found;
  uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
  struct page_scan scan = {
      .size = sizeof scan,
      .start = page,
      .end = page + PAGE_BYTES,
      .vec = (uintptr_t)&found,
      .vec_len = 1,
      .category_mask = CATEGORY_HUGE,
      .return_mask = CATEGORY_HUGE,
  };
  SysRes done =
      VG_(do_syscall)(__NR_ioctl, (UWord)pagemap, SCAN_REQUEST, (UWord)&scan, 0, 0, 0, 0, 0);
  failures += sr_isError(done);
  return !sr_isError(done) && sr_Res(done) == 1;
}

static VG_REGPARM(1) void access(Addr address) { tlb_access(&tlb, address, is_huge); }

static void add_access(IRSB *block, IRExpr *address, IRExpr *guard) {
  IRDirty *call =
      unsafeIRDirty_0_N(1, "access", VG_(fnptr_to_fnentry)(access), mkIRExprVec_1(address));
  if (guard != NULL) call->guard = guard;
  addStmtToIRSB(block, IRStmt_Dirty(call));
}

static void add_instructions(IRSB *block, UInt *count) {
  if (*count == 0) return;
  IRExpr *place = IRExpr_Const(IRConst_U64((ULong)(Addr)&instructions));
  IRTemp before = newIRTemp(block->tyenv, Ity_I64), after = newIRTemp(block->tyenv, Ity_I64);
  addStmtToIRSB(block, IRStmt_WrTmp(before, IRExpr_Load(Iend_LE, Ity_I64, place)));
  IRExpr *sum = IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(before), IRExpr_Const(IRConst_U64(*count)));
  addStmtToIRSB(block, IRStmt_WrTmp(after, sum));
  addStmtToIRSB(block, IRStmt_Store(Iend_LE, place, IRExpr_RdTmp(after)));
  *count = 0;
}

/* The accesses of a statement, none of which changes the address that it uses. */
static void add_accesses(IRSB *block, const IRStmt *one) {
  switch (one->tag) {
    case Ist_WrTmp:
      if (one->Ist.WrTmp.data->tag == Iex_Load)
        add_access(block, one->Ist.WrTmp.data->Iex.Load.addr, NULL);
      break;
    case Ist_Store: add_access(block, one->Ist.Store.addr, NULL); break;
    case Ist_StoreG:
      add_access(block, one->Ist.StoreG.details->addr, one->Ist.StoreG.details->guard);
      break;
    case Ist_LoadG:
      add_access(block, one->Ist.LoadG.details->addr, one->Ist.LoadG.details->guard);
      break;
    case Ist_Dirty:
      if (one->Ist.Dirty.details->mFx != Ifx_None)
        add_access(block, one->Ist.Dirty.details->mAddr, one->Ist.Dirty.details->guard);
      break;
    case Ist_CAS: add_access(block, one->Ist.CAS.details->addr, NULL); break;
    case Ist_LLSC: add_access(block, one->Ist.LLSC.addr, NULL); break;
    default: break;
  }
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *from, const VexGuestLayout *layout,
                        const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word,
                        IRType host_word) {
  (void)closure, (void)layout, (void)extents, (void)arch, (void)guest_word, (void)host_word;
  IRSB *to = deepCopyIRSBExceptStmts(from);
  UInt count = 0;
  for (Int i = 0; i < from->stmts_used; i++) {
    IRStmt *one = from->stmts[i];
    if (one == NULL || one->tag == Ist_NoOp) continue;
    if (one->tag == Ist_IMark) count++;
    if (one->tag == Ist_Exit) add_instructions(to, &count);
    addStmtToIRSB(to, one);
    add_accesses(to, one);
  }
  add_instructions(to, &count);
  return to;
}

static void open_pagemap(void) {
  pagemap = VG_(safe_fd)(VG_(fd_open)("/proc/self/pagemap", VKI_O_RDONLY, 0));
}

/* A child that does not call exec counts its own accesses only. */
static void begin_child(ThreadId thread) {
  (void)thread;
  VG_(close)(pagemap);
  open_pagemap();
  instructions = failures = tlb.accesses = tlb.l1_misses = tlb.walks = tlb.huge_walks = 0;
}

static void begin(void) {
  open_pagemap();
  VG_(atfork)(NULL, NULL, begin_child);
}

static void finish(Int status) {
  (void)status;
  VG_(umsg)
  ("instructions=%llu accesses=%llu l1_misses=%llu walks=%llu huge_walks=%llu failures=%llu\n",
   instructions, (ULong)tlb.accesses, (ULong)tlb.l1_misses, (ULong)tlb.walks, (ULong)tlb.huge_walks,
   failures);
}

static void describe(void) {
  VG_(details_name)("tlb");
  VG_(details_version)(NULL);
  VG_(details_description)("counts the misses of a simulated data TLB");
  VG_(details_copyright_author)("");
  VG_(details_bug_reports_to)("");
  VG_(basic_tool_funcs)(begin, instrument, finish);
}

VG_DETERMINE_INTERFACE_VERSION(describe)
