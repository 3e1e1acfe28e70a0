package machine

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Policy defines the times of retries and of nodes that are avoided.
type Policy struct {
	// Transient failures wait BackoffFirst, then twice as long each time up to BackoffMax, so that a bad node doesn't
	// cause a hot loop. An attempt that ran for Settled starts over.
	BackoffFirst, BackoffMax, Settled time.Duration
	// Conflicts wait a random time between these, so that the same attempts don't collide again.
	ConflictMin, ConflictMax time.Duration
	// A node that failed the job AvoidAfter times is avoided for AvoidFor.
	AvoidAfter int32
	AvoidFor   time.Duration
}

// DefaultPolicy returns the policy of clusters. The times of conflicts are FrameworkController's.
func DefaultPolicy() Policy {
	return Policy{
		BackoffFirst: 5 * time.Second, BackoffMax: 10 * time.Minute, Settled: 10 * time.Minute,
		ConflictMin: time.Minute, ConflictMax: 15 * time.Minute,
		AvoidAfter: 2, AvoidFor: 6 * time.Hour,
	}
}

// verdict determines whether another attempt follows.
type verdict struct {
	retry, accountable bool
	delay              time.Duration
}

// judge decides about the retry of an attempt of a job or a task. ran is how long it ran.
func (s *step) judge(p v1.RetryPolicy, st v1.RetryPolicyStatus, c *v1.CompletionStatus, ran time.Duration) verdict {
	failed := c.Type.Name == v1.Failed
	has := func(a v1.CompletionTypeAttribute) bool {
		for _, b := range c.Type.Attributes {
			if a == b {
				return true
			}
		}
		return false
	}
	switch {
	case c.Code == CodeRestart:
		return verdict{retry: true}
	case c.Code == CodeStopped, c.Code == CodeAttemptCompletion, c.Code == CodeTaskDeleted:
		return verdict{}
	case p.FancyRetryPolicy && failed && has(v1.Transient) && has(v1.Conflict):
		spread := s.Policy.ConflictMax - s.Policy.ConflictMin
		return verdict{retry: true, delay: s.Policy.ConflictMin + time.Duration(s.Random()*float64(spread))}
	case p.FancyRetryPolicy && failed && has(v1.Transient):
		return verdict{retry: true, delay: s.backoff(st.TotalRetriedCount-st.AccountableRetriedCount, ran)}
	case p.FancyRetryPolicy && failed && has(v1.Permanent):
		return verdict{}
	case p.MaxRetryCount == -2 && !failed:
		return verdict{retry: true, accountable: true}
	case failed && p.MaxRetryCount < 0:
		// An unlimited number of retries still needs pauses.
		return verdict{retry: true, accountable: true, delay: s.backoff(st.AccountableRetriedCount, ran)}
	case failed && st.AccountableRetriedCount < p.MaxRetryCount:
		return verdict{retry: true, accountable: true}
	}
	return verdict{}
}

// backoff returns the delay after n earlier retries of its kind.
func (s *step) backoff(n int32, ran time.Duration) time.Duration {
	d := s.Policy.BackoffFirst
	if ran >= s.Policy.Settled {
		return d
	}
	for ; n > 0 && d < s.Policy.BackoffMax; n-- {
		d *= 2
	}
	return min(d, s.Policy.BackoffMax)
}
