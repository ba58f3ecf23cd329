// Made by internal/clientgen from api/openapi.json; do not edit. To make it anew: make generate

/** the choices made at creation. An absent one is left to the server */
export interface Settings {
  /** what people call the holdout */
  name: string;
  /** the fraction of units that is kept secret, in (0,1]; above 1 and whole: their count; 1.0 leaves no training part */
  holdout: number;
  /** any, or published: only bounds of the literature; default: any. Of auto, gaussian, split */
  bounds?: string;
  /** the share of the probability of error that pays for vectors, selections and narrower intervals near 0 and 1, above 0 and at most 0.9. If you ask mostly for histograms, gradients or the best of many, take 0.5; default: 0.1. Of gaussian */
  capped?: number;
  /** the columns that questions are about, as a JSON object: for each column the listed values, [true,false] or texts, or the edges that cut its numbers. List null to give it a cell of its own; other values share one. Choose them without a look at held-out rows. Questions that tell rows of a cell apart are refused. Of cells */
  cells?: string;
  /** the fraction of units in the check part, from 0 on and below 1; above 1 and whole: their count. Nobody is given its rows: answers about models are compared with them. 0 makes none; default: 0.2 where label is given, else 0. With split=given you upload it */
  check?: number;
  /** the probability that all intervals together hold, for example 0.95 */
  confidence?: number;
  /** secret, or public: all columns of the holdout rows but the label can be downloaded, so that models can be judged by their predictions; default: secret */
  features?: string;
  /** gaussian or laplace; default: gaussian. Of thresholdout */
  form?: string;
  /** the half-width that every answer should have. Of auto, gaussian */
  half_width?: number;
  /** the column that is predicted; it is on the card, and the label of queries that name none */
  label?: string;
  /** with unit: the most rows that a unit can have; an upload with a larger unit is refused. Default: the size of the training part's largest unit; with weight row a larger unit then counts as one of that size */
  largest_unit?: number;
  /** auto: guess_and_check if its planned intervals are narrower or tokens are given, else gaussian. gaussian: answers every question with the holdout mean and Gaussian noise. guess_and_check: confirms a guess, the mean of the training and check parts (of a model, of the check part) or the analyst's own, where the holdout agrees; else answers from the holdout, for a token. thresholdout: answers with the mean of the training and check parts (of a model, of the check part) where the holdout agrees, by a noisy comparison; else with the holdout mean and noise, for a token. split: answers every question from units that no other question reads. cells: answers every question about declared cells (columns with listed values and edges) with the exact holdout mean, at one half-width however many are asked; refuses all other questions. ladder: a leaderboard of zero_one losses, which shows the best loss so far. naive (if the server allows it): answers with the exact holdout mean, and protects nothing. Default: auto */
  mechanism?: string;
  /** refuse, or accepted: the table is taken though another holdout of this server, also a deleted one, holds out or has shown many of its rows. No interval covers both then, and the card says so for good; default: refuse */
  overlap?: string;
  /** NAME/PATH of a table that is there already, in a source of the operator: a Parquet file, a folder of them, or a table of ClickHouse or Trino. Send no body */
  path?: string;
  /** science2015: threshold 4/sqrt(n) and noise 1/sqrt(n). Of thresholdout */
  preset?: string;
  /** how many questions may be asked; each mean that is released counts as one */
  questions?: number;
  /** in how many requests the questions are asked. You choose those of a request before you see its answers, so intervals are narrower. Unused questions of a round are lost. 1 is one batch; default: one question after the other. Of auto, gaussian */
  rounds?: number;
  /** the share of the held-out units, at most 0.9, that no question reads. The final report reads these alone where that is narrower, and nothing widens it. 0.5 makes other answers some 1.3 times as wide. Of auto, guess_and_check */
  sealed?: number;
  /** the scale of the noise, in units of a row function's [0,1]. Of auto, gaussian, thresholdout */
  sigma?: number;
  /** the name of a database of the operator, such as a ClickHouse. It has the held-out rows and computes the questions, with the same answers */
  source?: string;
  /** hash: a random split by a secret key; time:COLUMN: the training part is earlier; given: you upload the parts training and holdout and, if you like, check; default: hash */
  split?: string;
  /** a column whose values both parts get in proportion; its counts become public */
  stratify?: string;
  /** the id of a retired holdout that this one comes after, for example of last quarter's rows. Both cards name it, and this one says in what the two differ */
  succeeds?: string;
  /** of thresholdout, how far the training mean may be from the holdout mean; of ladder, the step by which the board moves; in units of a row function's [0,1]. Of thresholdout, ladder */
  threshold?: number;
  /** how many guesses may be wrong, and under gaussian how many promises may be broken; each one costs a token. Of auto, gaussian, guess_and_check, thresholdout */
  tokens?: number;
  /** what is independent of the others: a column whose rows with the same value belong together, or day(column); default: each row */
  unit?: string;
}

/** what everyone with a key may know about a holdout. Nothing on it depends on holdout rows, but for the numbers of rows and units and, when stratified, those of the strata */
export interface Card {
  name: string;
  settings: Settings;
  units: Counts;
  /** what is independent of the others: row, a column whose rows with the same value belong together, or day(column) */
  unit: string;
  columns: Column[];
  skipped: Skipped[];
  guarantee: Guarantee;
  /** what a null counts as */
  null_rule: string;
  /** what the intervals are about */
  target: string;
  warnings: Warning[];
  /** what the mechanism needs for its budget to last, or for its target to be the one on the card */
  assumes?: string;
  budget?: Budget;
  /** where the settings name no budget: how many questions the guarantee has instead, and how wide their intervals are; absent where they do */
  chosen?: string;
  /** true where a final report has closed the holdout: it answers nothing more, and the report can be read */
  closed?: boolean;
  created?: string;
  /** true as long as nothing was asked and nothing of the parts was shown: the table may be created again with other settings. The card then says nothing that depends on rows; the rest is on it after the first look */
  draft?: boolean;
  /** absent on the card of a dry run, which makes no holdout */
  id?: string;
  /** the most votes that a unit has with weight row: declared, or the rows of the training part's largest unit; 1 where units are rows */
  largest_unit?: number;
  /** what its rows have in common with earlier holdouts, which an admin has accepted. It stays, and no interval covers it */
  overlaps?: Overlap[];
  /** the fingerprints of the tables, sha256:…, by their names; they say nothing about rows */
  parts?: Record<string, string>;
  /** the id of the holdout in whose place this one was created again */
  replaces?: string;
  /** true where it was retired: it answers nothing more, and its rows were released. Do not judge a model that was fitted to them by its answers */
  retired?: boolean;
  /** absent on a draft whose units are not rows */
  rows?: Counts;
  /** damaged or rolled-back: the holdout gives no new answers; absent where it does */
  state?: string;
  /** the sizes of each stratum, where the split is stratified */
  strata?: Record<string, Counts>;
  /** the holdouts after this one */
  succeeded_by?: string[];
  /** the retired holdout before this one */
  succeeds?: string;
  /** of a question about a share of all units, beside the planned half_width of the guarantee: no answer has a wider interval while nothing is spent, whatever its outcome. Each token that is spent, and under guess_and_check each rough answer, widens what follows. The question brings no half_width and no promise of its own. Absent where nothing is known */
  widest_half_width?: number;
}

/** the sizes of the parts */
export interface Counts {
  training: number;
  holdout: number;
  /** of the part that answers about models are compared with, which is never handed out; absent where there is none */
  check?: number;
}

/** a column as the training part shows it */
export interface Column {
  name: string;
  /** number, bool, text or time */
  kind: string;
  /** the type in the uploaded file */
  source: string;
  /** of texts that are categories of pandas without an order */
  category?: boolean;
  dictionary?: TextShape;
  /** of texts: how many different ones */
  distinct?: number;
  /** of times */
  earliest?: string;
  /** of times */
  latest?: string;
  /** of numbers */
  max?: number;
  /** of numbers */
  min?: number;
  /** what the values are where the type does not say it, such as seconds since midnight */
  note?: string;
  /** rows of the training part without a value */
  nulls?: number;
  /** of texts that are categories in an order, as their writer has it: those of the training part, from the first to the last */
  order?: string[];
  /** of texts with few different ones */
  values?: string[];
}

/** what is public of the texts of a column */
export interface TextShape {
  /** different texts of the whole upload, rounded up to a power of two */
  texts: number;
  /** their lengths together, with a separator before and after each, rounded up to a power of two */
  bytes: number;
}

/** a column of the upload that is not part of the holdout */
export interface Skipped {
  name: string;
  reason: string;
}

/** something that the owner should know */
export interface Warning {
  /** stable, to compare with, such as dependent-rows */
  code: string;
  /** a sentence for a person */
  detail: string;
  /** the column that it is about */
  column?: string;
  /** the factor by which the variance of a mean grows, since rows depend on each other */
  design_effect?: number;
  /** the unit setting that would mend it */
  unit?: string;
}

/** what the rows of an upload have in common with an earlier holdout */
export interface Overlap {
  /** the id of the earlier holdout, which may be deleted */
  holdout: string;
  /** not-compared: nothing is known of the earlier one's rows, for its files are damaged, or not in this server's directory; held-out-again: held-out rows are held-out rows of the earlier one; shown-before: held-out rows are of its training or check part, or it is retired; held-out-elsewhere: rows of the training or check part are held out there, and can be asked about still: "held-out-again", "shown-before", "held-out-elsewhere", "not-compared" */
  matter: "held-out-again" | "shown-before" | "held-out-elsewhere" | "not-compared";
  /** 0 where they are not compared; else how many at least, rounded up to tenths: of the held-out rows, or of held-out-elsewhere of the earlier one's */
  share: number;
}

/** the mechanism with its numbers, fixed at creation */
export interface Guarantee {
  /** of this form */
  version: number;
  mechanism: string;
  /** units of the holdout */
  n: number;
  /** units of the training part */
  training: number;
  questions: number;
  /** the probability that all intervals together hold */
  confidence: number;
  /** of gaussian: runs of questions, by how many each has: the vectors and selections of one have an account */
  blocks?: number[];
  /** of gaussian: the share of the probability of error that pays for vectors, selections and narrower intervals near 0 and 1 */
  capped?: number;
  /** of cells: m, how many cells are declared */
  cells?: number;
  /** of guess_and_check: how many standard deviations of training mean minus holdout mean the narrowest margin leaves room for; of thresholdout: how many standard deviations of training minus holdout the narrowest margins leave room for */
  deviations?: number;
  /** of thresholdout: gaussian or laplace */
  form?: string;
  /** of every answer, where all are alike; of guess_and_check, of a guess that passes; of ladder, the widest that the interval of the board can become */
  half_width?: number;
  /** of gaussian: the last question has no noise */
  last_exact?: boolean;
  /** of thresholdout: what half_width is made of */
  parts?: Record<string, number>;
  /** of thresholdout: where one was asked for */
  preset?: string;
  /** of gaussian: intervals rest on a published bound */
  published?: boolean;
  /** of thresholdout: threshold and noise of a comparison follow how much the question varies in the training part */
  relative?: boolean;
  /** of gaussian: the noise of each round */
  round_sigma?: number[];
  /** in how many batches the questions are asked; absent: one by one */
  rounds?: number;
  /** of gaussian: later questions have less noise */
  scheduled?: boolean;
  /** of guess_and_check: how many units are sealed: no question reads them, and the final report may be read by these alone */
  sealed?: number;
  /** of cells: intervals are united over the sets of cells, and narrower for means near 0 and 1; else they rest on how far the cells' shares are expected to be off */
  sets?: boolean;
  /** of gaussian: the standard deviation of the noise; where scheduled, the scale of the schedule; of thresholdout: the standard deviation of the noise */
  sigma?: number;
  /** of gaussian: of the account of that share, of guarantees of the first version */
  subsample?: number;
  /** of gaussian: of the account of each block */
  subsamples?: number[];
  /** of thresholdout: how far the training mean may be from the holdout mean; of ladder: the step by which the board moves */
  threshold?: number;
  /** how many guesses may be wrong; a measured answer takes one too */
  tokens?: number;
  /** of gaussian: of plain answers when one, two, … promises that questions bore have turned out broken, each at a token: half_width is that before the first, and the last of these is that when all tokens are spent. Absent where no promises are checked */
  widths?: number[];
}

/** what is left of a guarantee. Meters are questions, tokens of mechanisms that have them, and rounds where questions are asked in rounds */
export interface Budget {
  questions: Meter;
  /** null where the mechanism has none */
  tokens: Meter | null;
  /** true where a final report has taken what was left: nothing more is answered */
  closed?: boolean;
  /** what of that is kept for questions that were sent to the source of the held-out rows and are not answered: whoever asks one of them again goes on with it, and nobody else can spend it; to a key with a grant it is no more left */
  held?: Held;
  /** questions of earlier rounds that nobody asked, and nobody can ask any more */
  lost?: number;
  /** how many questions the next round has; what of them the request does not ask is lost */
  next_round?: number;
  /** true where the holdout was retired */
  retired?: boolean;
  rounds?: Meter;
}

/** one count of a budget: left of what there was */
export interface Meter {
  left: number;
  of: number;
}

/** what is kept for questions that were sent to a source and are not answered */
export interface Held {
  /** how many queries they are */
  asked: number;
  questions: number;
  tokens: number;
}

/** a list of cards */
export interface Holdouts {
  holdouts: Card[];
}

/** an answer with what is left of the budget */
export interface AskReply {
  answer: Answer;
  budget: Budget;
  /** whether the answer had been given before; it cost nothing then */
  replayed: boolean;
  /** where units have several rows: what has one vote each, a column whose values are units, day(column), or row */
  per?: string;
  /** about the request: round-not-full says how many questions of its round it lost */
  warnings?: Warning[];
}

/** what is recorded of an answer. Its bytes never change */
export interface Answer {
  ledger: LedgerPlace;
  /** of the members of an answer and of what they mean; an answer is replayed as it was recorded */
  version: number;
  id: string;
  /** its id */
  holdout: string;
  /** the query's identity: sha256:… */
  query: string;
  /** null where the query has no defined result */
  value: number | null;
  /** null where no valid bound is known */
  interval: Interval | null;
  mechanism: string;
  /** what the mechanism took: holdout, or training: what the holdout was compared with, which value_from names; guess: your own; none: there was nothing to compare with; mixed: different for its row functions */
  source: string;
  cost: Cost;
  /** of a submission to a ladder: whether it is the one that is shown now */
  best?: boolean;
  /** where the answer is many numbers */
  items?: AnswerItem[];
  /** what the mechanism found: your guess or the training value is close, or close within a wider margin (rough), or differs; it agrees within a noisy threshold; what was promised is kept, or broken; nothing was compared (measured); there are too few rows to compare with, or none, so that no value is released and the interval is all of the range (unknown; items of which this is so do not count here beside others); of a selection selected; of a submission best or behind; mixed: different for its row functions. Absent of answers that were recorded before it was */
  outcome?: "close" | "rough" | "differs" | "agrees" | "kept" | "broken" | "measured" | "unknown" | "selected" | "best" | "behind" | "mixed";
  /** of a test; valid after all the questions of the guarantee, so that no correction belongs on top */
  p_value?: number;
  /** where a grant shows bit: whether the verdict is yes */
  passed?: boolean;
  /** of a test by itself: valid for this one test, if its hypothesis was chosen before any answer; not valid for one of many tests */
  plain_p_value?: number;
  /** of a question with a promise about the holdout, under gaussian */
  promise?: Promised;
  /** of a selection: the best candidate is at most so much better, in the query's units */
  regret?: number;
  /** where the answer is made of several row functions: the released mean of each, in [0,1] */
  row_functions?: AnswerPart[];
  /** of a selection: the candidate */
  selected?: string;
  /** of an answer that is not shown whole: what the grant of the key shows. Intervals are null then, p-values and outcomes absent, source is hidden, cost has no tokens, and the head of the chain is empty: "value", "bit" */
  shows?: "value" | "bit";
  /** which rows the value is of: check: the part that is kept for questions about models and never handed out; training: the part that everyone with a key can download; training+check: both; guess: your own number; holdout: what was released of the holdout; mixed: different for its row functions. Absent of answers that were recorded before it was: "check", "training", "training+check", "guess", "holdout", "mixed" */
  value_from?: "check" | "training" | "training+check" | "guess" | "holdout" | "mixed";
  /** of a decision or a test: "yes", "no", "undecided" */
  verdict?: "yes" | "no" | "undecided";
  /** what a reader of the answer should know. They follow from the question, from rows that were handed out or kept beside the holdout, and from the interval of the answer itself, never from more of holdout rows. Absent where there are none, and of answers that were recorded before they were */
  warnings?: Warning[];
}

/** one number of an answer that is many, with an interval of its own */
export interface AnswerItem {
  /** what the number is about, such as a category or a bin */
  of: string;
  /** null where it is undefined */
  value: number | null;
  /** null where no valid bound is known */
  low: number | null;
  high: number | null;
}

/** an interval in the query's own units. It holds the true value, together with all other intervals of the holdout, with its confidence */
export interface Interval {
  confidence: number;
  /** what the confidence is about, such as all 1000 questions */
  scope: string;
  /** what the interval is about, such as population of rows */
  target: string;
  /** the theorem */
  bound: string;
  high?: number;
  /** absent where the answer is items, each with its own, or a selection */
  low?: number;
  /** what the half-width is made of */
  parts?: Record<string, number>;
}

/** the released mean of one row function, in [0,1] */
export interface AnswerPart {
  value: number;
  /** null where no valid bound is known */
  low: number | null;
  high: number | null;
  source: string;
  value_from?: string;
}

/** what a query debits */
export interface Cost {
  questions: number;
  /** spent on wrong guesses, on measured answers and on broken promises; of an explanation, at most */
  tokens: number;
  /** 1 for the first question of a round */
  rounds?: number;
}

/** where an answer is in the ledger */
export interface LedgerPlace {
  /** the answer's place in the holdout's chain */
  seq: number;
  /** the chain's head with this answer: sha256:…; keep it to notice a restored old backup */
  head: string;
}

/** the reply to a batch */
export interface BatchReply {
  /** in the order of the queries */
  answers: BatchItem[];
  budget: Budget;
  /** about the request: round-not-full says how many questions of its round it lost */
  warnings?: Warning[];
}

/** one item of a batch: an answer, or the reason why there is none */
export interface BatchItem {
  replayed: boolean;
  answer?: Answer;
  /** why there is no answer; nothing was debited */
  not_asked?: "tokens-exhausted" | "rounds-exhausted" | "questions-exhausted" | "grant-questions-exhausted" | "grant-tokens-exhausted" | "half-width-too-narrow" | "max-questions" | "interrupted" | "holdout-closed" | "holdout-retired";
  /** where units have several rows: what has one vote each, a column whose values are units, day(column), or row */
  per?: string;
}

/** a page of the answers given so far, oldest first */
export interface AnswerPage {
  answers: PastAnswer[];
  /** the cursor of the next page; absent on the last */
  next?: number;
}

/** an answer in the history, with its query and what is known beside it */
export interface PastAnswer {
  /** the recorded bytes */
  answer: Answer;
  /** the canonical form of the query, which its identity is the hash of */
  canonical: unknown;
  /** the remark of who asked first; null where there is none, or notes were not kept yet */
  note: string | null;
  asked_by: Asker;
  /** when the answer was recorded, in whole seconds */
  time: string;
  /** in what its numbers are measured: what may stand on one axis */
  measure: Measure;
  /** that of the answer; null where it was recorded before outcomes were */
  outcome: "close" | "rough" | "differs" | "agrees" | "kept" | "broken" | "measured" | "unknown" | "selected" | "best" | "behind" | "mixed" | null | null;
  /** what the check part says to a query about a model, and what it and the training part together say to others; null without such parts, where they have no say (predictions by row without a check part), or where they cannot be read */
  reference: Reference | null;
  /** where units have several rows: what has one vote each, a column whose values are units, day(column), or row */
  per?: string;
}

/** who asked a question first */
export interface Asker {
  /** of the key */
  id: string;
  /** of the key; null where the server does not know it any more */
  name: string | null;
}

/** in what the numbers of an answer are measured */
export interface Measure {
  /** share: a part of 1; count: of rows or units; of: as the expression in of; product: as the product of the two expressions in of, for example of a variance; pure: a number without a unit, such as a correlation or an AUC: "share", "count", "of", "product", "pure" */
  kind: "share" | "count" | "of" | "product" | "pure";
  /** row expressions: one of kind of, two of kind product */
  of?: string[];
}

/** what a part that was handed out says to a query: the number that explain says */
export interface Reference {
  /** which part says so: "check", "training", "training+check" */
  part: "check" | "training" | "training+check";
  /** null where the answer is items or a selection, or is undefined */
  value: number | null;
  /** where the answer is many numbers */
  items?: ReferenceItem[];
  /** of a selection: the candidate that the part would select */
  selected?: string;
}

/** one number of a reference that is many */
export interface ReferenceItem {
  /** what the number is about */
  of: string;
  /** null where it is undefined */
  value: number | null;
}

/** what is known of a query without touching a holdout row */
export interface Explanation {
  /** the query's identity: sha256:… */
  query: string;
  /** the canonical form of the query, which its identity is the hash of. A member of more than 4096 bytes, such as a model, stands as {bytes, digest} */
  canonical: unknown;
  /** the row functions, for people */
  functions: string[];
  /** how their means make the value */
  combine: string;
  /** what the interval is about */
  target: string;
  /** what a null counts as */
  null_rule: string;
  cost: Cost;
  /** what the rows of value_from say; null without such or where it is undefined */
  training: number | null;
  /** the planned half-width, in the query's own units: of an answer now with the likeliest outcome, if the holdout is as the training part is; of items the widest; of an answered query the recorded one; null where there is none */
  half_width: number | null;
  /** the widest half-width: no answer now has a wider one, whatever its outcome; null where nothing is known */
  widest_half_width: number | null;
  /** how an answer now can come out, the likeliest first; of an answered query how it came out, at no cost */
  outcomes: ForeseenOutcome[];
  /** whether asking would be a replay, at no cost */
  answered: boolean;
  warnings: Warning[];
  /** the theorem */
  bound?: string;
  /** what the training part says, with the intervals that answers like it would get */
  items?: AnswerItem[];
  /** where the question could be measured instead: what it would cost with "measure": true, and the half-width; the value is then the holdout's, whatever is guessed */
  measured?: ForeseenOutcome;
  /** where units have several rows: what has one vote each, the column whose values are units, day(column), or row */
  per?: string;
  /** under gaussian with tokens: the question's promise, or what the training part suggests; how wide the interval is with it and without */
  promise?: Foreseen;
  /** of a selection like that: the best candidate is at most so much better */
  regret?: number;
  /** how wide a final report of five numbers would be now: the half-width of each, in half-widths of a textbook's interval for one question; about, by the normal law */
  report_width?: number;
  /** what the training part would select */
  selected?: string;
  /** what an answer is compared with, and which rows training is about: check: the part that is kept for questions about models; training: the part that everyone with a key can download; training+check: both. Absent where no part has a say: "check", "training", "training+check" */
  value_from?: "check" | "training" | "training+check";
  /** the expressions of the query that can be null or clamped, with what shares of the training part are */
  values?: Watched[];
  /** what an answer like the training part would decide */
  verdict?: string;
}

/** a promise about the holdout: its bound in the query's own units, and whether it held */
export interface Promised {
  /** question: you promised it; training: the training part suggested it: "question", "training" */
  from: "question" | "training";
  /** whether the holdout keeps it; null where no token was left to check it, and the answer is that of a question without one */
  held: boolean | null;
  /** the answer about the holdout is at least so much */
  at_least?: number;
  /** the answer about the holdout is at most so much */
  at_most?: number;
  /** the mean distance of the values from 0 is at most so much */
  disagreement?: number;
  /** the variance of the values over the units is at most so much */
  variance?: number;
}

/** what a promise about the holdout is worth, before it is checked: its bound in the query's own units, and the half-widths with it and without */
export interface Foreseen {
  /** question: you promise it; training: the training part suggests it: "question", "training" */
  from: "question" | "training";
  /** whether it would be checked if the question were asked now as it is; what the training part only suggests is for you to promise: of a model it was fitted to, it says too much good */
  used: boolean;
  /** of the interval if the promise holds */
  half_width: number | null;
  /** of the interval without a promise; about as wide as that of a broken one */
  half_width_without: number | null;
  /** the answer about the holdout is at least so much */
  at_least?: number;
  /** the answer about the holdout is at most so much */
  at_most?: number;
  /** the mean distance of the values from 0 is at most so much */
  disagreement?: number;
  /** the variance of the values over the units is at most so much */
  variance?: number;
}

/** one way in which an answer can come out, with its price and how wide its interval then is */
export interface ForeseenOutcome {
  /** as the answer says it; absent of an answer that was recorded before answers said it */
  outcome: "close" | "rough" | "differs" | "agrees" | "kept" | "broken" | "measured" | "unknown" | "selected" | "best" | "behind" | "mixed";
  /** what an answer with this outcome costs; of mixed, at most; nothing if it is recorded */
  cost: Cost;
  /** the planned half-width: with this outcome, if the holdout varies as the training part does; null where there is none */
  half_width: number | null;
  /** the widest half-width: no answer with this outcome has a wider one; null where nothing is known. The range's own where the holdout may have too few rows to say anything */
  widest_half_width: number | null;
  /** true of the outcome of a query that was answered: asking again is a replay */
  recorded?: boolean;
  /** how wide a final report would be after it: as report_width of the explanation */
  report_width?: number;
}

/** an expression of a query whose values may count as others than a reader takes them for, with the shares of the training part */
export interface Watched {
  /** the expression */
  of: string;
  /** the share of the training part's rows that are asked about in which it is null, or a condition in it compares a null; of a column that a model reads, of all rows */
  null: number;
  /** the share that is below the range, and counts as its low end */
  below: number;
  /** the share that is above the range, and counts as its high end */
  above: number;
  /** round numbers between which nearly all values of the training part lie, at most one in two hundred being below and as many above; where the declared range cuts off more, or is much wider */
  suggested_range?: number[];
}

/** the final report of a holdout, which closed it */
export interface FinalReport {
  /** in the order of the report */
  answers: ReportAnswer[];
  /** the place of the closing, which is the end of the holdout's questions */
  ledger: LedgerPlace;
  /** the report in sentences, for a paper or a pull request; the ends of intervals are rounded outward */
  text: string;
  /** its id */
  holdout: string;
  /** of the holdout */
  name: string;
  /** when the holdout was closed, in whole seconds */
  time: string;
  closed_by: Asker;
  /** what was spent before the report */
  before: Spent;
  /** who asked for the answers before the report, most answers first */
  asked_by: ReportAsker[];
  /** held out, and read for the answers */
  units: number;
  /** what is independent of the others: row, a column, or day(column) */
  unit: string;
  /** that all intervals of the holdout hold together, those before the report included */
  confidence: number;
  /** what the intervals are about */
  target: string;
  /** what the card warns of that the intervals rest on: rows that are not independent of each other */
  warnings: Warning[];
  /** the answers are read by the sealed units alone, which no question had read: what was asked before does not widen them */
  sealed?: boolean;
  /** of the report */
  title?: string;
}

/** an answer of a final report, with its query */
export interface ReportAnswer {
  /** the recorded bytes */
  answer: Answer;
  /** the canonical form of the query, which says that it is a report's */
  canonical: unknown;
  /** the remark that came with the query, such as a model's name */
  note: string | null;
  /** in what its numbers are measured: what may stand on one axis */
  measure: Measure;
  /** where units have several rows: what has one vote each */
  per?: string;
}

/** who asked before a report, and for how many answers */
export interface ReportAsker {
  /** how many answers the key asked for first */
  answers: number;
  /** of the key */
  id: string;
  /** of the key; null where the server does not know it any more */
  name: string | null;
}

/** what was spent before a final report */
export interface Spent {
  /** questions that were asked before the report */
  questions: number;
  /** tokens that were spent before it: a wrong guess costs one, and a measured answer */
  tokens: number;
}

/** how wide the answers of a final report would be now */
export interface ReportPlan {
  /** in the order of the queries */
  answers: PlannedReport[];
  before: Spent;
  /** how many questions are left, all of which the report takes */
  closes: number;
  /** the report would be read by the sealed units alone: that is narrower than by all units, after what was asked */
  sealed?: boolean;
}

/** one answer of a report before it is made: its width if the holdout is as the parts are that it would be compared with */
export interface PlannedReport {
  /** the query's identity in the report: sha256:… */
  query: string;
  measure: Measure;
  note: string | null;
  /** how many numbers it has; what the report's share of the probability of error is divided by */
  questions: number;
  /** what the rows of value_from say; null where the answer is items or undefined */
  value: number | null;
  /** the planned half-width; of items the widest; null where none is known */
  half_width: number | null;
  warnings: Warning[];
  /** the theorem */
  bound?: string;
  items?: AnswerItem[];
  /** which rows value is of: "check", "training", "training+check" */
  value_from?: "check" | "training" | "training+check";
}

/** a model that questions can name by its digest */
export interface KeptModel {
  /** what questions name it by: "model": {"sha256": …} */
  sha256: string;
  /** about what it takes in memory */
  bytes: number;
  /** when it goes if nobody uses it; it goes earlier when the room is needed, and when the server ends */
  until: string;
}

/** what a plan is asked for: n units, and a number of questions or a half-width in units of a row function's [0,1] */
export interface PlanRequest {
  /** units of the holdout */
  n: number;
  /** how many cells are declared, where all questions are about declared columns with listed values and edges: the mechanism cells is then planned, too */
  cells?: number;
  /** of all intervals together; default: 0.95 */
  confidence?: number;
  /** wanted, in (0,1): each method then also says how many questions it answers */
  half_width?: number;
  /** only bounds of the literature */
  published?: boolean;
  /** how many; without it, as many as fit half_width, or as a holdout of this size gets */
  questions?: number;
  /** in how many requests the questions are asked; default: one question after the other */
  rounds?: number;
  /** how many guesses may be wrong; each one costs a token */
  tokens?: number;
  /** units of the training part */
  training?: number;
  /** what is to be asked: kinds of questions, each COUNT TYPE [of CATEGORIES] [in LOW..HIGH] [sd DEVIATION] [at MEAN] [where SHARE]. Then questions may be left out */
  workload?: string;
}

/** a comparison of the methods. It repeats what was asked, with the defaults filled in */
export interface Plan {
  n: number;
  questions: number;
  confidence: number;
  methods: MethodPlan[];
  /** the narrowest method among those that a holdout can be created with and whose assumptions nothing in the request contradicts */
  recommended: string;
  /** sentences for a person */
  notes: string[];
  cells?: number;
  /** where the request names no budget: how many questions a holdout like this gets; absent where it does */
  chosen?: string;
  half_width?: number;
  published?: boolean;
  rounds?: number;
  tokens?: number;
  training?: number;
  /** what the workload costs under each mechanism, and how wide its intervals are in its own units; methods are then about as many questions as the recommended plan has */
  workload?: Workload;
}

/** what one method promises */
export interface MethodPlan {
  /** its name: a mechanism, or a bound of the literature */
  method: string;
  /** of the answers to that many questions; null where there is none: more slices than units. From 1/2 on it promises nothing that is not known of a mean in [0,1] beforehand */
  half_width: number | null;
  /** the standard deviation of the noise of all answers, or the largest */
  noise_sigma: number;
  /** what the half-width is made of; they add up to it */
  parts: Record<string, number>;
  /** whether the bound is one of the literature */
  published: boolean;
  /** what it needs beside independent units */
  assumes: string;
  /** what a holdout is created with to get this; absent for what is a formula alone */
  mechanism?: string;
  /** the largest number of questions that it answers within the half-width asked for */
  questions_within?: number;
  /** in how many requests the questions are asked; absent: one by one */
  rounds?: number;
}

/** what a list of questions costs under each mechanism, and how wide its intervals are in its own units */
export interface Workload {
  /** the kinds of questions, as they were read */
  items: WorkloadItem[];
  /** what each mechanism has for them */
  plans: WorkloadPlan[];
  /** the plan with the narrowest intervals, on the geometric mean, among those that can answer everything and take questions one after the other (or in the rounds asked for); empty where there is none */
  recommended: string;
  /** sentences for a person */
  notes: string[];
}

/** one kind of question of a workload */
export interface WorkloadItem {
  count: number;
  /** the type with what it is about */
  of: string;
  /** what the planned half-width takes the training part to say */
  assumes: string;
}

/** what one mechanism has for a workload */
export interface WorkloadPlan {
  /** the mechanism, with rounds where they are one of its settings */
  name: string;
  mechanism: string;
  /** create the holdout with so many: what the workload costs, or more if more were asked for */
  questions: number;
  /** that the guarantee has, for wrong guesses or broken promises; 0 where the mechanism has none */
  tokens: number;
  /** of each kind of question, in the order of items */
  items: WorkloadPrice[];
  /** what the mechanism needs beside independent units */
  assumes?: string;
  /** why the mechanism cannot have the workload */
  refused?: string;
  /** create the holdout with so many; absent: one by one */
  rounds?: number;
}

/** what one mechanism has for one kind of question */
export interface WorkloadPrice {
  /** that each of them costs */
  questions: number;
  /** the planned half-width, in the question's own units: of the last one, of the likeliest outcome; of items the widest; null where there is none */
  half_width: number | null;
  /** the widest half-width of such an answer, whatever its outcome, while no token is spent; null where nothing is known */
  widest_half_width: number | null;
  /** why the mechanism does not answer it */
  refused?: string;
}

/** what is known of an API key, and its secret, which is shown this once */
export interface CreatedKey {
  id: string;
  /** who uses it, for people */
  name: string;
  /** admin, analyst or granted */
  scope: string;
  created: string;
  revoked: boolean;
  /** the id of the key that made it; absent of a key that the server made at its start, and of keys from before this was kept */
  by?: string;
  /** whose tokens stand for it; absent of a key with a secret */
  oidc?: KeySubject;
  /** the bearer token, hk_…; it is kept hashed and cannot be shown again. Absent of a key with an oidc_subject */
  secret?: string;
}

/** what is known of an API key; its secret is not kept */
export interface KeyInfo {
  id: string;
  /** who uses it, for people */
  name: string;
  /** admin, analyst or granted */
  scope: string;
  created: string;
  revoked: boolean;
  /** the id of the key that made it; absent of a key that the server made at its start, and of keys from before this was kept */
  by?: string;
  /** whose tokens stand for it; absent of a key with a secret */
  oidc?: KeySubject;
}

/** the subject of an OpenID Connect issuer that a key is bound to */
export interface KeySubject {
  issuer: string;
  /** the claim of a token that names the subject */
  claim: string;
  subject: string;
}

/** a list of keys, without their secrets */
export interface Keys {
  keys: KeyInfo[];
}

/** what a key is made with */
export interface NewKey {
  /** who will use it, for people */
  name: string;
  /** what it may do; granted: what its grants say, and nothing without one: "admin", "analyst", "granted" */
  scope: "admin" | "analyst" | "granted";
  /** a subject of the server's OpenID Connect issuer, whose tokens stand for the key; it then has no secret */
  oidc_subject?: string;
}

/** a slice of a holdout's budget for one key, with what is spent of it */
export interface GrantInfo {
  id: string;
  /** whose it is */
  key: Asker;
  /** its id */
  holdout: string;
  /** what is shown of answers: all; the numbers without their intervals; whether the verdict is yes: "full", "value", "bit" */
  shows: "full" | "value" | "bit";
  questions: GrantMeter;
  /** null where the holdout has none, and in the eyes of a key that is not shown what questions cost */
  tokens: GrantMeter | null;
  created: string;
  /** revoked or expired, too, where that is so of its key or of a grant above it: "valid", "revoked", "expired" */
  state: "valid" | "revoked" | "expired";
  expires?: string;
  /** the id of the grant that this one is a slice of */
  parent?: string;
}

/** one count of a grant */
export interface GrantMeter {
  /** the limit; null where the grant has none of its own */
  of: number | null;
  /** what its key has spent */
  own: number;
  /** what its key and the keys of the grants below it have spent */
  spent: number;
  /** what it can still spend: the least that is left of it, of the grants above it and of the holdout; 0 once it has ended */
  left: number;
}

/** a list of grants */
export interface Grants {
  /** in the order of their creation */
  grants: GrantInfo[];
}

/** what a grant is made of */
export interface NewGrant {
  /** the id of a key with the scope granted, which has no grant of this holdout yet */
  key: string;
  /** its id */
  holdout: string;
  /** what it may spend, together with the grants below it */
  questions: number;
  /** when it ends, by the server's clock; absent: never */
  expires?: string;
  /** the id of the grant that this one is a slice of; absent: of the holdout's own budget */
  parent?: string;
  /** what it shows of answers; absent: full: "full", "value", "bit" */
  shows?: "full" | "value" | "bit";
  /** what it may spend, together with the grants below it; absent: it has no limit of its own */
  tokens?: number;
}

/** what one key has spent of a holdout */
export interface Spender {
  key: Asker;
  questions: number;
  tokens: number;
}

/** what keys have spent of a holdout */
export interface Spending {
  /** who spent the most first; what a final report closed is nobody's */
  spenders: Spender[];
}

/** what a release is made of */
export interface NewRelease {
  /** what the release spends; at most six decimals */
  epsilon: number;
  /** of which columns statistics are released; each part of the release has less of its epsilon the more there are */
  columns?: ColumnRequest[];
  /** accepted: make the release although releases of other holdouts are of the same rows, or may have been forgotten with a restore. The card says so for good, with the sum that is known: "accepted" */
  earlier_releases?: "accepted";
  /** what all releases of the holdout may spend together, for ever; the first release says it, and later ones leave it out. Default: 3 */
  release_epsilon?: number;
  /** at most so many rows of a unit count, chosen at random; noise grows with it. Default: 1. Left out where units are rows */
  rows_per_unit?: number;
}

/** what is to be released of one column */
export interface ColumnRequest {
  /** of the column */
  name: string;
  /** of a column of numbers, growing: how many rows are below the first, between each two, and from the last on */
  edges?: number[];
  /** the upper bound */
  high?: number;
  /** of a column of numbers, with high: the mean and quantiles are released too, of the values moved between these bounds */
  low?: number;
  /** the ranks of the quantiles, from 0.005 to 0.995, in their order; default: 0.25, 0.5 and 0.75 */
  quantiles?: number[];
  /** of a column of texts: how many rows have each of them, and how many have another text */
  texts?: string[];
}

/** a private release of statistics, as it is recorded, the same bytes for ever */
export interface PrivateRelease {
  ledger: LedgerPlace;
  version: number;
  /** its id */
  holdout: string;
  /** the id of the request */
  release: string;
  created: string;
  /** what the release has spent */
  epsilon: number;
  /** 0: the protection is pure */
  delta: number;
  /** what is protected: row, a column whose rows with the same value belong together, or day(column) */
  unit: string;
  /** of each interval by itself, and of the shares and counts of one column together. Intervals are about the rows that count, and about the noise alone */
  confidence: number;
  /** what is protected, and from whom, in words */
  guarantee: string;
  /** what was asked for, in its one form */
  request: unknown;
  /** how many units there are */
  units: Statistic;
  /** in the order of their names */
  columns: ColumnStatistics[];
  /** how many rows were kept of them, where several of a unit may be */
  rows?: Statistic;
  /** at most so many rows of a unit count; absent where units are rows */
  rows_per_unit?: number;
  /** that a restore may have forgotten releases, which add up to it */
  warnings?: Warning[];
}

/** the private releases of a holdout, with what they have spent */
export interface PrivateReleases {
  /** in the order of their creation, each the recorded bytes */
  releases: PrivateRelease[];
  /** what all releases may spend together; of a holdout without one the default */
  release_epsilon: number;
  /** what they have spent */
  spent: number;
  /** what is left */
  left: number;
  /** how many there are */
  made: number;
  /** other holdouts whose releases are of the same rows: what they have spent adds up, and an admin has accepted it */
  earlier_releases?: string[];
  /** the parameter after for the next page; absent on the last one */
  next?: number;
}

/** a released number, with an interval for the table's own */
export interface Statistic {
  /** with its noise, moved into what is possible */
  value: number;
  /** the lower end of the interval */
  low: number;
  /** its upper end */
  high: number;
}

/** what was released of one column */
export interface ColumnStatistics {
  name: string;
  /** the share of the rows that have no value */
  nulls: Statistic;
  /** the rows in each cell; with the nulls, all rows */
  cells?: Cell[];
  /** of the values, those outside of the bounds moved to them; it says nothing where no row has a value */
  mean?: Statistic;
  /** of the values, those outside of the bounds moved to them; they say nothing where no row has a value */
  quantiles?: Quantile[];
}

/** one cell of a column, with how many rows are in it */
export interface Cell {
  /** how many rows */
  count: Statistic;
  /** of all rows */
  share: Statistic;
  /** the rows with this value */
  bool?: boolean;
  /** the rows with numbers from this one on; absent: with any below to */
  from?: number;
  /** true: the rows with any text that is not declared */
  other?: boolean;
  /** the rows with this text */
  text?: string;
  /** and below this one; absent: any */
  to?: number;
}

/** a released quantile */
export interface Quantile {
  /** such as 0.5 for the median */
  rank: number;
  /** with its noise, moved into what is possible */
  value: number;
  /** the lower end of the interval */
  low: number;
  /** its upper end */
  high: number;
}

/** the body of every error reply (RFC 9457). It may have more members, which are those of its code */
export interface Problem {
  /** identifies the class of problem: /problems/ and the code */
  type: string;
  /** the class in words; the same for every occurrence */
  title: string;
  /** the HTTP status */
  status: number;
  /** the last part of type, to compare with */
  code: "malformed" | "unauthorized" | "budget-exhausted" | "epsilon-exhausted" | "forbidden" | "foreign-origin" | "grant-ended" | "grant-exhausted" | "not-shown" | "not-found" | "method-not-allowed" | "request-timeout" | "conflict" | "holdout-exists" | "released-before" | "rows-known" | "too-large" | "unsupported-media-type" | "range-not-satisfiable" | "bad-upload" | "idempotency-mismatch" | "invalid" | "max-questions" | "unit-undecided" | "rate-limited" | "internal" | "busy" | "holdout-damaged" | "ledger-rolled-back" | "timeout" | "unavailable" | "disk-full";
  /** what happened this time and what can be done */
  detail: string;
  /** each thing that is wrong, in the order of the request */
  errors?: Violation[];
}

/** one thing that is wrong with a request */
export interface Violation {
  /** what is wrong; it does not repeat the body's values */
  detail: string;
  /** from 1, in characters */
  column?: number;
  /** from 1: in the body if it is malformed, else in the expression at pointer */
  line?: number;
  /** the name of the parameter, header or part that is wrong */
  parameter?: string;
  /** RFC 6901 pointer into the body */
  pointer?: string;
  /** what was probably meant */
  suggestion?: string;
}

/** the accuracies of one classifier of a simulation */
export interface Accuracies {
  /** in the training part */
  training: number;
  /** in the holdout, as told: what the analyst believes */
  told: number;
  /** in fresh data: what is true */
  fresh: number;
}

/** one step of a simulation: the classifier has one column more */
export interface Round {
  /** of the classifier */
  columns: number;
  /** where the holdout tells its own numbers */
  standard: Accuracies;
  /** where Thresholdout tells them */
  thresholdout: Accuracies;
}

/** feature selection, played once: by a holdout that tells its own numbers, and through Thresholdout */
export interface Simulation {
  /** the same seed plays the same again */
  seed: number;
  /** of the training part, of the holdout and of the fresh data; there are as many columns */
  rows: number;
  /** whether a five-hundredth of the columns knows a little of the label */
  signal: boolean;
  rounds: Round[];
}
