package trace

import "math"

// random is the generator splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014). It is
// simple enough to reimplement in any language, so that other programs can generate the same jobs.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// uniform returns a number in [0, 1).
func (r *random) uniform() float64 { return float64(r.next()>>11) / (1 << 53) }

// normal returns a normally distributed number, by Box and Muller.
func (r *random) normal() float64 {
	u := r.uniform()
	for u == 0 {
		u = r.uniform()
	}
	v := r.uniform()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}
