package engine

import "github.com/holdoutd/holdoutd/rowfn"

// item is what one pass must hold together: a product with its two functions, or a function that no product is of.
type item struct {
	function int // where product is negative
	product  int // or -1
}

// itemsOf are the items of a batch: functions in their order, those of products where the later one of the two stands.
func itemsOf(b rowfn.Batch) []item {
	items := make([]item, 0, len(b.Functions)+len(b.Products))
	if len(b.Products) == 0 {
		for i := range b.Functions {
			items = append(items, item{i, -1})
		}
		return items
	}
	used, at := make([]bool, len(b.Functions)), make([][]int, len(b.Functions))
	for i, p := range b.Products {
		used[p.A], used[p.B] = true, true
		last := max(p.A, p.B)
		at[last] = append(at[last], i)
	}
	for i := range b.Functions {
		for _, p := range at[i] {
			items = append(items, item{-1, p})
		}
		if !used[i] {
			items = append(items, item{i, -1})
		}
	}
	return items
}

// piece is some items of a batch as a batch of their own.
type piece struct {
	of        rowfn.Batch
	items     []item
	batch     rowfn.Batch
	functions []int // where the functions of the piece are in the batch
	products  []int // where its products are
}

func pieceOf(of rowfn.Batch, items []item) piece {
	p := piece{of: of, items: items}
	if len(of.Products) == 0 { // as nearly all are: a stretch of functions
		if len(items) > 0 {
			p.batch.Functions = of.Functions[items[0].function:][:len(items)]
		}
		for _, i := range items {
			p.functions = append(p.functions, i.function)
		}
		return p
	}
	places := map[int]int{}
	place := func(function int) int {
		at, ok := places[function]
		if !ok {
			at = len(p.functions)
			places[function], p.functions = at, append(p.functions, function)
			p.batch.Functions = append(p.batch.Functions, of.Functions[function])
		}
		return at
	}
	for _, i := range items {
		if i.product < 0 {
			place(i.function)
			continue
		}
		pair := of.Products[i.product]
		p.batch.Products = append(p.batch.Products, rowfn.Product{A: place(pair.A), B: place(pair.B)})
		p.products = append(p.products, i.product)
	}
	return p
}
