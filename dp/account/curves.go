package account

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/normal"
)

// shifted is the pair N(0,1) and (1-rate) N(0,1) + rate N(mu,1), drawn from the second where remove is set, and from the first where not.
type shifted struct {
	mu, rate float64
	remove   bool
}

// at is the x at which the second law is e^loss times as likely as the first.
func (c shifted) at(loss float64) float64 {
	switch {
	case math.IsInf(loss, 1):
		return loss
	case c.rate == 1:
		return loss/c.mu + c.mu/2
	}
	// 1 - rate + rate e^{mu x - mu²/2} = e^loss
	rest := math.Expm1(loss) + c.rate
	if rest <= 0 {
		return math.Inf(-1)
	}
	return math.Log(rest/c.rate)/c.mu + c.mu/2
}

// between is the mass of (low, high] under N(mean, 1), without cancellation in the tails.
func between(low, high, mean float64) float64 {
	low, high = low-mean, high-mean
	if !(low < high) {
		return 0
	}
	if low < 0 && high <= 0 {
		low, high = -high, -low
	}
	if low < 0 {
		return 1 - normal.Upper(-low) - normal.Upper(high)
	}
	if math.IsInf(high, 1) || high-low > 1 {
		return normal.Upper(low) - upper(high)
	}
	return normal.Density(low) * fall(low, high-low)
}

func upper(x float64) float64 {
	if math.IsInf(x, 1) {
		return 0
	}
	return normal.Upper(x)
}

// fall is the integral of e^{-low t - t²/2} over (0, width): by Gauss and Legendre, for widths of at most 1.
func fall(low, width float64) float64 {
	sum := 0.0
	for i, node := range legendre {
		t := width * (1 + node) / 2
		sum += weights[i] * math.Exp(-t*(low+t/2))
	}
	return sum * width / 2
}

// Nodes and weights of eight points.
var (
	legendre = []float64{-0.9602898564975363, -0.7966664774136267, -0.5255324099163290, -0.1834346424956498, 0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363}
	weights  = []float64{0.1012285362903763, 0.2223810344533745, 0.3137066458778873, 0.3626837833783620, 0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763}
)

func (c shifted) masses(low, high float64) (p, q float64) {
	if !c.remove { // a draw from N(0,1), whose loss is that of the other direction with its sign turned
		low, high = -high, -low
	}
	from, to := c.at(low), c.at(high)
	plain := between(from, to, 0)
	mixed := c.rate * between(from, to, c.mu)
	if c.rate < 1 {
		mixed += (1 - c.rate) * plain
	}
	if c.remove {
		return mixed, plain
	}
	return plain, mixed
}

func (c shifted) ends() (low, high float64) {
	const reach = 10 // of a normal variable, but for the mass tail
	low, high = c.loss(-reach), c.loss(reach+c.mu)
	if !c.remove {
		low, high = -c.loss(reach), -c.loss(-reach)
	}
	return low, high
}

// loss is ln of the second law over the first at x.
func (c shifted) loss(x float64) float64 {
	exponent := c.mu*x - c.mu*c.mu/2
	if c.rate == 1 {
		return exponent
	}
	if exponent > 30 {
		return math.Log(c.rate) + exponent + math.Log1p((1-c.rate)/c.rate*math.Exp(-exponent))
	}
	return math.Log1p(c.rate * math.Expm1(exponent))
}

// laplace is the pair Lap(1) and Lap(1) + eps.
type laplace struct{ eps float64 }

func (c laplace) masses(low, high float64) (p, q float64) {
	// Between -eps and eps the loss has the density e^{(L-eps)/2}/4 on the first table, and e^-L times that on the second.
	if from, to := max(low, -c.eps), min(high, c.eps); from < to {
		p = math.Exp((from-c.eps)/2) * math.Expm1((to-from)/2) / 2
		q = math.Exp(-(from+c.eps)/2) * -math.Expm1((from-to)/2) / 2
	}
	if low < c.eps && c.eps <= high {
		p, q = p+1./2, q+math.Exp(-c.eps)/2
	}
	if low < -c.eps && -c.eps <= high {
		p, q = p+math.Exp(-c.eps)/2, q+1./2
	}
	return p, q
}

func (c laplace) ends() (low, high float64) { return -c.eps - PLDStep, c.eps }

// response is randomized response: a loss of eps or -eps. Its delta is not in these masses.
type response struct{ eps, delta float64 }

func (c response) masses(low, high float64) (p, q float64) {
	truth, lie := (1-c.delta)/(1+math.Exp(-c.eps)), (1-c.delta)/(1+math.Exp(c.eps))
	if low < c.eps && c.eps <= high {
		p, q = p+truth, q+lie
	}
	if low < -c.eps && -c.eps <= high {
		p, q = p+lie, q+truth
	}
	return p, q
}

func (c response) ends() (low, high float64) { return -c.eps - PLDStep, c.eps }
