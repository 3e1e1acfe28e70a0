package cell

// Why explains what keeps a request from starting now. It changes nothing.
func (s *Scheduler) Why(r *Request) Explanation { return Explanation{} }
