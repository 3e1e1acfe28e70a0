package sim

import "time"

// Meter measures the costs of a run. It is a parameter because virtual time doesn't include these costs, and because tests
// provide their own figures.
type Meter interface {
	// Wall returns the time of a monotonic clock.
	Wall() time.Duration
	// CPU returns the processor time of all threads of the process, or 0 if the system doesn't report it.
	CPU() time.Duration
	// Allocated returns the number of bytes that the process has allocated in total.
	Allocated() uint64
	// PeakMemory returns the largest resident size of the process in bytes, or 0 if the system doesn't report it.
	PeakMemory() uint64
}

// Speed holds the costs of decisions. Durations are in microseconds.
type Speed struct {
	DecisionsPerSec            float64 `json:"decisionsPerSec"`
	DecisionsPerSecInclDeletes float64 `json:"decisionsPerSecInclDeletes"`
	P50                        float64 `json:"p50DecisionUs"`
	P99                        float64 `json:"p99DecisionUs"`
	Max                        float64 `json:"maxDecisionUs"`
	// FirstPod is for calls that searched a place for a gang. Binding is for calls that bound a pod.
	FirstPodP50           float64 `json:"p50FirstPodUs"`
	FirstPodP99           float64 `json:"p99FirstPodUs"`
	BindingP50            float64 `json:"p50BindingUs"`
	BindingP99            float64 `json:"p99BindingUs"`
	AllocBytesPerDecision float64 `json:"allocBytesPerDecision"`
	CPUPerDecision        float64 `json:"cpuUsPerDecision"`
	PeakRSS               float64 `json:"peakRssMiB"`
}

// stopwatch collects the durations of single calls.
type stopwatch struct {
	meter                         Meter
	all, first, binding           []time.Duration
	deletes                       time.Duration
	cpu                           time.Duration
	allocated, aside, asideBefore uint64
}

func (s *stopwatch) start() {
	if s.meter != nil {
		s.cpu, s.allocated = s.meter.CPU(), s.meter.Allocated()
	}
}

func (s *stopwatch) now() time.Duration {
	if s.meter == nil {
		return 0
	}
	return s.meter.Wall()
}

func (s *stopwatch) decided(since time.Duration, first, bound bool) {
	if s.meter == nil {
		return
	}
	took := s.meter.Wall() - since
	s.all = append(s.all, took)
	if first {
		s.first = append(s.first, took)
	}
	if bound {
		s.binding = append(s.binding, took)
	}
}

// leave and enter exclude the simulator's work between decisions from the measurement.
func (s *stopwatch) leave() {
	if s.meter != nil {
		s.asideBefore = s.meter.Allocated()
	}
}

func (s *stopwatch) enter() {
	if s.meter != nil {
		s.aside += s.meter.Allocated() - s.asideBefore
	}
}

// speed ends the measurement and returns its result. It returns nil without a meter or decisions.
func (s *stopwatch) speed() *Speed {
	if s.meter == nil || len(s.all) == 0 {
		return nil
	}
	n := float64(len(s.all))
	out := &Speed{
		AllocBytesPerDecision: float64(s.meter.Allocated()-s.allocated-s.aside) / n,
		CPUPerDecision:        micros(s.meter.CPU()-s.cpu) / n,
		PeakRSS:               float64(s.meter.PeakMemory()) / (1 << 20),
	}
	total := time.Duration(0)
	for _, d := range s.all {
		total += d
	}
	if total > 0 {
		out.DecisionsPerSec = n / total.Seconds()
		out.DecisionsPerSecInclDeletes = n / (total + s.deletes).Seconds()
	}
	out.P50, out.P99, out.Max = micros(percentile(s.all, 0.5)), micros(percentile(s.all, 0.99)), micros(percentile(s.all, 1))
	out.FirstPodP50, out.FirstPodP99 = micros(percentile(s.first, 0.5)), micros(percentile(s.first, 0.99))
	out.BindingP50, out.BindingP99 = micros(percentile(s.binding, 0.5)), micros(percentile(s.binding, 0.99))
	return out
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
