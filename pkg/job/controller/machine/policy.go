package machine

import (
	"time"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Policy defines the delays of retries, and when nodes are avoided.
type Policy struct {
	// After transient failures, retries wait for BackoffFirst at first, and then twice as long each time up to BackoffMax, so that a bad node
	// doesn't cause a hot loop. After an attempt that ran for at least Settled, the delay is BackoffFirst again.
	BackoffFirst, BackoffMax, Settled time.Duration
	// After conflicts, retries wait for a random time between ConflictMin and ConflictMax, so that the same attempts don't collide again.
	ConflictMin, ConflictMax time.Duration
	// If the job failed AvoidAfter times on a node, the node is avoided for the time AvoidFor.
	AvoidAfter int32
	AvoidFor   time.Duration
}

// DefaultPolicy returns the policy for real clusters. Its delays after conflicts are the same as in FrameworkController.
func DefaultPolicy() Policy {
	return Policy{
		BackoffFirst: 5 * time.Second, BackoffMax: 10 * time.Minute, Settled: 10 * time.Minute,
		ConflictMin: time.Minute, ConflictMax: 15 * time.Minute,
		AvoidAfter: 2, AvoidFor: 6 * time.Hour,
	}
}

// verdict says whether another attempt follows, whether it counts as a retry, and how long it waits.
type verdict struct {
	retry, accountable bool
	delay              time.Duration
}

// judge decides whether a job or a task is retried after an attempt. ran is how long the attempt ran.
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
		// Even with an unlimited number of retries, there must be delays between them.
		return verdict{retry: true, accountable: true, delay: s.backoff(st.AccountableRetriedCount, ran)}
	case failed && st.AccountableRetriedCount < p.MaxRetryCount:
		return verdict{retry: true, accountable: true}
	}
	return verdict{}
}

// backoff returns the delay after n earlier retries of the same kind.
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
