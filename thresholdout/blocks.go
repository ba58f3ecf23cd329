package thresholdout

import (
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Vectors and selections are paid for in blocks of questions, each with an M of its own: an M that suits late questions, before which much was released,
// widens early ones by a tenth. M has to be fixed beforehand, and what is charged under one M must keep a budget of its own on every way. So each question brings a k-th part of
// the budget to the block that it lies in, and a release charges the questions that it takes in one block (docs/proofs/account.md, section 4).

// blockRatio is how many times as far a block reaches as the one before it. What was released grows like the place, so that its square root doubles within
// a block; an M between those that are best for both ends widens either by less than two parts in a hundred.
const blockRatio = 4

// divide plans the blocks: of rounds each is one, for nothing is released within it.
func (m *gaussian) divide() {
	for round := range m.Rounds {
		s := State{Rounds: round}
		m.block(m.RoundSize(round), s, s)
	}
	if m.Rounds > 0 {
		return
	}
	for from, to := int64(0), int64(blockRatio); from < m.Questions; from, to = to, to*blockRatio {
		to = min(to, m.Questions)
		m.block(to-from, State{Questions: from}, State{Questions: to - 1})
	}
}

// typicalVector is how many means share the share of one question, in the vectors that the M of blocks are best for: the twelve shares of a histogram cost four.
const typicalVector = 3

// block adds a block of so many questions, with the M that suits its first and last state best.
func (m *gaussian) block(questions int64, first, last State) {
	share := (1 - mechanismShare) * m.blocksShare(first) * m.Beta() / float64(m.Questions) / typicalVector
	places := []bounds.Place{
		{Sigma: m.sigmaOf(first), Released: m.releasedAtMost(first)},
		{Sigma: m.sigmaOf(last), Released: m.releasedAtMost(last)},
	}
	m.Blocks = append(m.Blocks, questions)
	m.Subsamples = append(m.Subsamples, int64(bounds.SharedM(float64(m.N), share, places...)))
}

// exact reports whether no answer of the present block bears noise: those of the last round, and a single question.
func (m *gaussian) exact(s State) bool {
	if m.Rounds > 0 {
		return s.Rounds >= m.Rounds-1
	}
	return m.LastExact && m.Questions == 1
}

// blocksShare is the part of the probability of error that the blocks have in this state.
func (m *gaussian) blocksShare(s State) float64 {
	if m.exact(s) {
		return m.Capped
	}
	return (1 - cutsShare) * m.Capped
}

// checkBlocks refuses stored blocks that are not those of the questions.
func (m *gaussian) checkBlocks() error {
	if len(m.Blocks) != len(m.Subsamples) || m.Rounds > 0 && int64(len(m.Blocks)) != m.Rounds || m.Subsample != 0 {
		return errHead
	}
	left := m.Questions
	for i, questions := range m.Blocks {
		if questions < 1 || questions > left || m.Subsamples[i] < 1 || m.Subsamples[i] >= m.N || m.Rounds > 0 && questions != m.RoundSize(int64(i)) {
			return errHead
		}
		left -= questions
	}
	if left != 0 {
		return errHead
	}
	return nil
}

// charged is the block that pays for a release of so many questions, and how many of them lie in it: the block with most, and of equal ones the last.
func (m *gaussian) charged(s State, price int64) (block int, questions int64) {
	if m.Rounds > 0 {
		return int(s.Rounds), price
	}
	from := int64(0)
	for i, length := range m.Blocks {
		to := from + length
		if own := min(to, s.Questions+price) - max(from, s.Questions); own >= questions && own > 0 {
			block, questions = i, own
		}
		from = to
	}
	return block, questions
}
