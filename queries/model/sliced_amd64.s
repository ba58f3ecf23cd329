#include "textflag.h"

// Bytes with one bit set, one byte for each bit of a leaf's number.
DATA ·ones<>+0(SB)/8, $0x8040201008040201
GLOBL ·ones<>(SB), RODATA|NOPTR, $8

// func walk512(splits *slicedSplit, n int, conditions, slots *lanes, numbers *[8]lanes)
TEXT ·walk512(SB), NOSPLIT, $0-40
	MOVQ splits+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ conditions+16(FP), DX
	MOVQ slots+24(FP), DI
	MOVQ numbers+32(FP), R8
	TESTQ CX, CX
	JZ   done

split:
	MOVL    (SI), AX
	MOVBLZX 4(SI), BX
	MOVBLZX 5(SI), R9
	SHLQ    $6, AX
	SHLQ    $6, BX
	VMOVDQU64 (DI)(BX*1), Z0  // the rows of the slot
	VMOVDQU64 (DX)(AX*1), Z1
	VPANDNQ Z0, Z1, Z2        // the others
	VPANDQ  Z0, Z1, Z0
	VMOVDQU64 Z2, 64(DI)(BX*1)
	VMOVDQU64 Z0, (DI)(BX*1)
	TESTL   R9, R9
	JZ      next

flip:
	BSFL    R9, R10
	SHLQ    $6, R10
	VPXORQ  (R8)(R10*1), Z0, Z3
	VMOVDQU64 Z3, (R8)(R10*1)
	LEAL    -1(R9), R11
	ANDL    R11, R9
	JNZ     flip

next:
	ADDQ $8, SI
	DECQ CX
	JNZ  split
	VZEROUPPER

done:
	RET

// numbersOf leaves the leaves' numbers of 64 rows in Z0, a byte each, from the words at R8; Z24 to Z31 are the bits of a number.
#define numbersOf \
	VPXORQ  Z0, Z0, Z0; \
	KMOVQ   0(R8), K1; \
	KMOVQ   64(R8), K2; \
	KMOVQ   128(R8), K3; \
	KMOVQ   192(R8), K4; \
	VPADDB  Z24, Z0, K1, Z0; \
	VPADDB  Z25, Z0, K2, Z0; \
	VPADDB  Z26, Z0, K3, Z0; \
	VPADDB  Z27, Z0, K4, Z0; \
	KMOVQ   256(R8), K1; \
	KMOVQ   320(R8), K2; \
	KMOVQ   384(R8), K3; \
	KMOVQ   448(R8), K4; \
	VPADDB  Z28, Z0, K1, Z0; \
	VPADDB  Z29, Z0, K2, Z0; \
	VPADDB  Z30, Z0, K3, Z0; \
	VPADDB  Z31, Z0, K4, Z0; \
	VMOVDQU64 Z0, (SP)

// func add512(dst *float64, eights int, values *[slicedLeaves]float64, bits int, numbers *[8]lanes)
TEXT ·add512(SB), NOSPLIT, $64-40
	MOVQ dst+0(FP), DI
	MOVQ eights+8(FP), CX
	MOVQ values+16(FP), SI
	MOVQ bits+24(FP), BX
	MOVQ numbers+32(FP), R8
	VPBROADCASTB ·ones<>+0(SB), Z24
	VPBROADCASTB ·ones<>+1(SB), Z25
	VPBROADCASTB ·ones<>+2(SB), Z26
	VPBROADCASTB ·ones<>+3(SB), Z27
	VPBROADCASTB ·ones<>+4(SB), Z28
	VPBROADCASTB ·ones<>+5(SB), Z29
	VPBROADCASTB ·ones<>+6(SB), Z30
	VPBROADCASTB ·ones<>+7(SB), Z31
	VMOVUPD (SI), Z4
	VMOVUPD 64(SI), Z5

word:
	TESTQ CX, CX
	JZ    end
	numbersOf
	ADDQ  $8, R8
	MOVQ  $8, DX
	CMPQ  CX, DX
	CMOVQLT CX, DX
	SUBQ  DX, CX
	MOVQ  SP, R9
	CMPQ  BX, $3
	JLE   eight
	CMPQ  BX, $4
	JLE   sixteen

many:
	VPMOVZXBQ (R9), Z1
	KXNORB  K1, K1, K1
	VPXORQ  Z2, Z2, Z2
	VGATHERQPD (SI)(Z1*8), K1, Z2
	VADDPD  (DI), Z2, Z2
	VMOVUPD Z2, (DI)
	ADDQ    $8, R9
	ADDQ    $64, DI
	DECQ    DX
	JNZ     many
	JMP     word

eight:
	VPMOVZXBQ (R9), Z1
	VPERMPD Z4, Z1, Z2
	VADDPD  (DI), Z2, Z2
	VMOVUPD Z2, (DI)
	ADDQ    $8, R9
	ADDQ    $64, DI
	DECQ    DX
	JNZ     eight
	JMP     word

sixteen:
	VPMOVZXBQ (R9), Z1
	VPERMI2PD Z5, Z4, Z1
	VADDPD  (DI), Z1, Z1
	VMOVUPD Z1, (DI)
	ADDQ    $8, R9
	ADDQ    $64, DI
	DECQ    DX
	JNZ     sixteen
	JMP     word

end:
	VZEROUPPER
	RET
