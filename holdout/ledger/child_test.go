package ledger

func runChild() {}
