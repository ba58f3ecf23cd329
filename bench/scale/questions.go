// Package scale measures what questions cost where tables already are: beside SQL that an engineer would write for the same means on the same engine in the same run, as rows, columns
// and questions grow. make bench-scale runs it; docs/SCALE.md has what came out.
package scale

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Schema is that of the tables that are measured: orders of a shop, made up of hashes of their numbers.
var Schema = dataset.Schema{Fields: []dataset.Field{
	{Name: "amount", Kind: dataset.Number}, {Name: "distance", Kind: dataset.Number}, {Name: "age", Kind: dataset.Number}, {Name: "hours", Kind: dataset.Number},
	{Name: "rating", Kind: dataset.Number}, {Name: "weight", Kind: dataset.Number}, {Name: "at", Kind: dataset.Time}, {Name: "city", Kind: dataset.Text}, {Name: "returned", Kind: dataset.Bool},
}}

// Question is a mean as a row function, and as an engineer writes it: on the owner's own table and types, in floats.
type Question struct {
	Function rowfn.Function
	Where    bool   // the mean is of the units in which Where holds, whose number is one sum more
	ByHand   string // in ClickHouse
	Trino    string
}

// cities are those of the column city.
var cities = []string{"Basel", "Bern", "Chur", "Genf", "Lausanne", "Lugano", "Luzern", "Zug", "Zürich", "Winterthur"}

// Questions are n means: ten kinds, each with other constants every time.
func Questions(n int) []Question {
	number := func(name string) *rowfn.Node { return rowfn.Column(name, rowfn.Number) }
	month := &rowfn.Node{Op: rowfn.OpMonth, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Column("at", rowfn.Time)}}
	city := rowfn.Column("city", rowfn.Text)
	share := func(c *rowfn.Node) rowfn.Function { return rowfn.Function{Value: c, Lo: 0, Hi: 1} }
	mean := func(v *rowfn.Node, hi float64) rowfn.Function { return rowfn.Function{Value: v, Lo: 0, Hi: hi} }
	var all []Question
	for i := range n {
		k := float64(i / 10)
		var q Question
		both := func(sql string) { q.ByHand, q.Trino = sql, sql }
		switch i % 10 {
		case 0:
			q.Function = mean(number("amount"), 1000-k)
			q.ByHand, q.Trino = fmt.Sprintf("avg(if(amount < %v, amount, %v))", 1000-k, 1000-k), fmt.Sprintf("avg(least(amount, %ve0))", 1000-k)
		case 1:
			q.Function = share(rowfn.CompareTo(rowfn.OpGreater, number("age"), 40+k))
			q.ByHand, q.Trino = fmt.Sprintf("avg(age > %v)", 40+k), fmt.Sprintf("avg(if(age > %v, 1e0, 0e0))", 40+k)
		case 2:
			q.Function, q.Where = mean(number("rating"), 5), true
			name := cities[(i/10)%len(cities)]
			q.Function.Where = rowfn.Compare(rowfn.OpEq, city, rowfn.TextConst(name))
			q.ByHand, q.Trino = fmt.Sprintf("avgIf(rating, city = '%s')", name), fmt.Sprintf("avg(rating) FILTER (WHERE city = '%s')", name)
		case 3:
			q.Function = mean(rowfn.If(rowfn.Column("returned", rowfn.Condition), number("weight"), rowfn.Const(k/8)), 20)
			q.ByHand, q.Trino = fmt.Sprintf("avg(if(returned, weight, %v))", k/8), fmt.Sprintf("avg(if(returned, weight, %ve0))", k/8)
		case 4:
			q.Function = mean(rowfn.Mul(number("distance"), rowfn.Const(0.3+k/64)), 3000)
			both(fmt.Sprintf("avg(distance * %v)", 0.3+k/64))
			q.Trino = fmt.Sprintf("avg(distance * %ve0)", 0.3+k/64)
		case 5:
			m := math.Mod(k, 12)
			q.Function = share(rowfn.CompareTo(rowfn.OpEq, month, m))
			q.ByHand, q.Trino = fmt.Sprintf("avg(toMonth(at, 'UTC') = %v)", m+1), fmt.Sprintf("avg(if(month(at) = %v, 1e0, 0e0))", m+1)
		case 6:
			q.Function = mean(rowfn.If(rowfn.CompareTo(rowfn.OpLess, number("weight"), 5+k/4), number("amount"), number("hours")), 1000)
			q.ByHand, q.Trino = fmt.Sprintf("avg(if(weight < %v, amount, hours))", 5+k/4), fmt.Sprintf("avg(if(weight < %ve0, amount, hours))", 5+k/4)
		case 7:
			q.Function = share(rowfn.CompareTo(rowfn.OpGreater, rowfn.Div(number("amount"), number("weight")), 30+k))
			q.ByHand, q.Trino = fmt.Sprintf("avg(amount / weight > %v)", 30+k), fmt.Sprintf("avg(if(amount / weight > %ve0, 1e0, 0e0))", 30+k)
		case 8:
			a, b := cities[(i/10)%len(cities)], cities[(i/10+3)%len(cities)]
			q.Function = share(rowfn.And(rowfn.In(city, rowfn.TextConst(a), rowfn.TextConst(b)), rowfn.CompareTo(rowfn.OpLessEq, number("age"), 30+k)))
			q.ByHand, q.Trino = fmt.Sprintf("avg(city IN ('%s', '%s') AND age <= %v)", a, b, 30+k), fmt.Sprintf("avg(if(city IN ('%s', '%s') AND age <= %v, 1e0, 0e0))", a, b, 30+k)
		case 9:
			q.Function = mean(rowfn.Abs(rowfn.Sub(number("rating"), rowfn.Const(2.5+k/32))), 5)
			q.ByHand, q.Trino = fmt.Sprintf("avg(abs(rating - %v))", 2.5+k/32), fmt.Sprintf("avg(abs(rating - %ve0))", 2.5+k/32)
		}
		all = append(all, q)
	}
	return all
}

// Batch is what the server sums for some questions. With squares are those products that an interval of each mean's own variance needs.
func Batch(questions []Question, squares bool) rowfn.Batch {
	var b rowfn.Batch
	product := func(x, y int) {
		if squares {
			b.Products = append(b.Products, rowfn.Product{A: x, B: y})
		}
	}
	for _, q := range questions {
		at := len(b.Functions)
		b.Functions = append(b.Functions, q.Function)
		product(at, at)
		if q.Where {
			b.Functions = append(b.Functions, rowfn.Function{Lo: 0, Hi: 1, Where: q.Function.Where})
			product(at, at+1)
			product(at+1, at+1)
		}
	}
	return b
}

// Means are the answers of questions from the sums of their batch over n units.
func Means(questions []Question, sums []int64, n int64) []float64 {
	var means []float64
	for at := 0; len(means) < len(questions); at++ {
		q := questions[len(means)]
		per := float64(n) * float64(rowfn.One)
		if q.Where {
			per = float64(sums[at+1])
		}
		means = append(means, q.Function.Lo+float64(sums[at])/per*(q.Function.Hi-q.Function.Lo))
		if q.Where {
			at++
		}
	}
	return means
}
