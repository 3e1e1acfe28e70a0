package archive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/archive"
)

// record returns the n-th record of a test. Each record is a second later than the record before.
func record(n int, actor, verb string) audit.Record {
	return audit.Record{
		ID: fmt.Sprintf("%020d", n), Time: epoch.Add(time.Duration(n) * time.Second), Request: "r", Actor: actor, ActorUID: "u", Token: "t", Address: "10.0.0.1",
		Verb: verb, Kind: "job", Object: "train", Owner: "ann", VC: "nlp", Outcome: audit.Done, Status: 200, Reason: "", Detail: map[string]string{"a": "b"},
	}
}

func TestRecordsAreReadAsTheyWereWrittenAndOnlyOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		var all []audit.Record
		for n := range 7 {
			all = append(all, record(n, []string{"ann", "bob"}[n%2], []string{"stop", "submit", "read"}[n%3]))
		}
		all[3].Outcome, all[3].Reason, all[3].Detail = audit.Refused, "not yours\x00", nil
		require.NoError(t, s.SaveAudit(ctx, all[:4]))
		require.NoError(t, s.SaveAudit(ctx, nil))
		forged := all[2]
		forged.Actor = "mallory"
		require.NoError(t, s.SaveAudit(ctx, append([]audit.Record{forged}, all[3:]...)), "what is there stays")

		var paged []audit.Record
		for q := (audit.Query{Limit: 3}); ; {
			page, err := s.Audit(ctx, q)
			require.NoError(t, err)
			paged = append(paged, page.Items...)
			if q.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		require.Len(t, paged, 7)
		all[3].Reason = "not yours"
		for i := range all {
			assert.Equal(t, all[i], paged[6-i])
		}
		for want, q := range map[int]audit.Query{
			4: {Actor: "ann"}, 1: {Outcome: audit.Refused}, 3: {Verb: "stop"}, 0: {Kind: "token"},
			2: {Since: epoch.Add(2 * time.Second), Until: epoch.Add(4 * time.Second)}, 7: {Owner: "ann", Object: "train"},
		} {
			page, err := s.Audit(ctx, q)
			require.NoError(t, err)
			assert.Len(t, page.Items, want, "%+v", q)
		}
		require.NoError(t, s.PruneAudit(ctx, epoch.Add(5*time.Second), 0))
		page, err := s.Audit(ctx, audit.Query{})
		require.NoError(t, err)
		assert.Len(t, page.Items, 2)
	})
}

func TestRecordsThatCantBeOnesAreRefused(t *testing.T) {
	s, ctx := sqlitePlace(t).open(t), t.Context()
	for name, change := range map[string]func(*audit.Record){
		"a short id": func(r *audit.Record) { r.ID = "1" },
		"an odd id":  func(r *audit.Record) { r.ID = strings.Repeat("'", 20) },
		"no time":    func(r *audit.Record) { r.Time = time.Time{} },
		"no verb":    func(r *audit.Record) { r.Verb = "" },
		"no outcome": func(r *audit.Record) { r.Outcome = "" },
	} {
		r := record(1, "ann", "stop")
		change(&r)
		require.ErrorIs(t, s.SaveAudit(ctx, []audit.Record{r}), archive.ErrBadQuery, name)
	}
	require.ErrorIs(t, s.SaveAudit(ctx, make([]audit.Record, 501)), archive.ErrBadQuery)
	long := record(2, strings.Repeat("a", 5000), "stop")
	long.Detail = map[string]string{"x": strings.Repeat("y", 5000)}
	require.NoError(t, s.SaveAudit(ctx, []audit.Record{long}), "whoever chose the texts has done it anyway")
	page, err := s.Audit(ctx, audit.Query{})
	require.NoError(t, err)
	assert.Len(t, page.Items[0].Actor, 4096)
	assert.Equal(t, map[string]string{"omitted": "5008 bytes"}, page.Items[0].Detail)
	for _, q := range []audit.Query{{Limit: -1}, {Limit: 1001}, {Cursor: "x"}, {Cursor: "MSAxIHgn"}} {
		_, err := s.Audit(ctx, q)
		require.ErrorIs(t, err, archive.ErrBadQuery)
	}
}

func TestWhatStrangersCausedGoesFirstWhereTheAuditIsTooLong(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		var all []audit.Record
		for n := range 10 {
			all = append(all, record(n, []string{"ann", ""}[n%2], "stop"))
		}
		require.NoError(t, s.SaveAudit(ctx, all))
		left := func(rows int64) (ids []int64) {
			require.NoError(t, s.PruneAudit(ctx, time.Time{}, rows))
			page, err := s.Audit(ctx, audit.Query{})
			require.NoError(t, err)
			for _, r := range page.Items {
				ids = append(ids, r.Time.Unix()-epoch.Unix())
			}
			return ids
		}
		assert.Len(t, left(0), 10, "no bound")
		assert.Len(t, left(10), 10)
		assert.Equal(t, []int64{9, 8, 7, 6, 5, 4, 2, 0}, left(8), "the oldest of those without an actor")
		assert.Equal(t, []int64{8, 6, 4}, left(3), "then the oldest")
	})
}
