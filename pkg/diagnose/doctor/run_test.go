package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

func checkOf(id string, need Need, run func(context.Context, *Cluster) ([]Finding, error)) *Check {
	return &Check{ID: id, Group: "machines", Title: id, Examines: id, Needs: need, Run: run}
}

func result(r *Report, id string) Result {
	for _, one := range r.Results {
		if one.ID == id {
			return one
		}
	}
	return Result{}
}

func TestAChecksTroubleIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		well := func(context.Context, *Cluster) ([]Finding, error) { return nil, nil }
		slow := checkOf("slow", 0, func(ctx context.Context, _ *Cluster) ([]Finding, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		deaf := checkOf("deaf", 0, func(context.Context, *Cluster) ([]Finding, error) {
			time.Sleep(time.Hour)
			return nil, nil
		})
		deaf.Limit = 10 * time.Second
		o := Options{Checks: []*Check{
			checkOf("well", 0, well), slow, deaf,
			checkOf("panics", 0, func(context.Context, *Cluster) ([]Finding, error) { panic("nil map") }),
			checkOf("fails", 0, func(context.Context, *Cluster) ([]Finding, error) {
				return nil, hint.Errorf("do this", "no such thing")
			}),
			checkOf("half", 0, func(context.Context, *Cluster) ([]Finding, error) {
				return []Finding{warning("m1", "r", "w"), problem("m2", "r", "p")}, errors.New("then it broke")
			}),
			checkOf("api", API, well), checkOf("ssh", Machines, well), checkOf("folder", Folder, well),
		}}
		start := time.Now()
		r, err := Run(t.Context(), &Cluster{Now: time.Now}, o)
		require.NoError(t, err)
		assert.Equal(t, checkLimit, time.Since(start), "as long as the longest, not all together")
		assert.Equal(t, OK, result(r, "well").Verdict)
		for id, says := range map[string]string{"slow": "did not end within 1m0s", "deaf": "did not end within 10s", "panics": "the check itself failed: nil map", "fails": "could not be checked: no such thing"} {
			one := result(r, id)
			assert.Equal(t, Warning, one.Verdict, id)
			assert.Contains(t, one.Findings[0].Message, says)
			if id != "panics" {
				assert.NotEmpty(t, one.Findings[0].Remedy, id)
			}
		}
		half := result(r, "half")
		assert.Equal(t, []string{"p", "w", "could not be checked: then it broke"}, []string{half.Findings[0].Message, half.Findings[1].Message, half.Findings[2].Message}, "the worst first")
		for id, says := range map[string]string{"api": "give --kubeconfig", "ssh": "give -p DIR", "folder": "give -p DIR"} {
			assert.Equal(t, Skipped, result(r, id).Verdict, id)
			assert.Contains(t, result(r, id).Findings[0].Message, says)
		}
		assert.Equal(t, Counts{OK: 1, Skipped: 3, Warning: 4, Problem: 1}, r.Counts)
		assert.Equal(t, Problem, r.Verdict)
		time.Sleep(time.Hour) // the deaf one
	})
}

func TestACancelledRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, &Cluster{Now: time.Now}, Options{Checks: []*Check{checkOf("x", 0, func(ctx context.Context, _ *Cluster) ([]Finding, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})}})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestWhatOthersSayComesInOneLine(t *testing.T) {
	r, err := Run(t.Context(), &Cluster{Now: time.Now}, Options{Checks: []*Check{checkOf("x", 0, func(context.Context, *Cluster) ([]Finding, error) {
		return []Finding{problem("m", "a\x1b[2Jb", "first\nsecond").seen("line\r\nline")}, nil
	})}})
	require.NoError(t, err)
	f := result(r, "x").Findings[0]
	assert.False(t, strings.ContainsAny(f.Message+f.Evidence+f.Remedy, "\n\r\x1b"), "%q", f)
}

func TestSkippedChecksDontCount(t *testing.T) {
	r := &Report{Results: []Result{{Verdict: OK}, {Verdict: Skipped}}}
	r.count()
	assert.Equal(t, OK, r.Verdict)
}

func TestARepeatedCheckTakesThePlaceOfTheFirst(t *testing.T) {
	r := &Report{Results: []Result{{ID: "a", Verdict: Problem}, {ID: "b", Verdict: OK}}}
	r.Merge(&Report{Results: []Result{{ID: "a", Verdict: OK}}}, []Fixed{{What: "x"}})
	assert.Equal(t, OK, r.Verdict)
	assert.Len(t, r.Fixes, 1)
}

func TestALazyAnswerIsAskedForOnceUnlessItWasCutOff(t *testing.T) {
	var l lazy[int]
	asked := 0
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	ask := func(ctx context.Context) (int, error) { asked++; return asked, ctx.Err() }
	_, err := l.get(cut, ask)
	require.Error(t, err)
	for range 3 {
		v, err := l.get(t.Context(), ask)
		require.NoError(t, err)
		assert.Equal(t, 2, v)
	}
}
