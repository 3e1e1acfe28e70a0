package archive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// walk reads a list page by page. It calls f between two pages.
func walk(ctx context.Context, s archive.Store, q api.JobQuery, f func()) ([]api.Job, error) {
	var out []api.Job
	for {
		page, err := s.Jobs(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if page.Next == "" {
			return out, nil
		}
		q.Cursor = page.Next
		f()
	}
}

func jobNames(jobs []api.Job) []string {
	out := []string{}
	for _, j := range jobs {
		out = append(out, j.Name)
	}
	return out
}

func TestAListIsFiltered(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		save := func(f *v1.Framework, vc string) {
			f.Labels[v1.LabelVC] = vc
			require.NoError(t, s.SaveJob(t.Context(), f))
		}
		save(job("alice", "waits_100%", 0, 1), "vision")
		save(run(job("alice", "Runs", 1, 1), 0, 1), "vision")
		save(end(run(job("bob", "ok", 2, 1), 0, 2), 0, 3, false), "nlp")
		save(end(run(job("bob", "bad", 3, 1), 0, 3), 1, 4, false), "vision")
		save(end(run(job("carol", "stopped", 4, 1), 0, 4), -210, 5, false), "nlp")
		save(end(run(job("carol", "retries", 5, 1), 0, 5), 137, 6, true), "nlp")
		for name, c := range map[string]struct {
			q    api.JobQuery
			want []string
		}{
			"everything, newest first":         {api.JobQuery{}, []string{"retries", "stopped", "bad", "ok", "Runs", "waits_100%"}},
			"a user":                           {api.JobQuery{User: "bob"}, []string{"bad", "ok"}},
			"a virtual cluster":                {api.JobQuery{VirtualCluster: "vision"}, []string{"bad", "Runs", "waits_100%"}},
			"a state":                          {api.JobQuery{States: []string{api.Failed}}, []string{"bad"}},
			"several states":                   {api.JobQuery{States: []string{api.Failed, api.Stopped, api.Running, api.Failed}}, []string{"stopped", "bad", "Runs"}},
			"one that waits to be tried again": {api.JobQuery{States: []string{api.Waiting}}, []string{"retries", "waits_100%"}},
			"states of a user":                 {api.JobQuery{User: "bob", States: []string{api.Failed, api.Running}}, []string{"bad"}},
			"a word in the name":               {api.JobQuery{Keyword: "RUN"}, []string{"Runs"}},
			"a word in the user":               {api.JobQuery{Keyword: "aro"}, []string{"retries", "stopped"}},
			"a word in the virtual cluster":    {api.JobQuery{Keyword: "nlp"}, []string{"retries", "stopped", "ok"}},
			"a word with a sign of patterns":   {api.JobQuery{Keyword: "_100%"}, []string{"waits_100%"}},
			"only signs of patterns":           {api.JobQuery{Keyword: "%"}, []string{"waits_100%"}},
			"submitted since":                  {api.JobQuery{Since: epoch.Add(4 * time.Second)}, []string{"retries", "stopped"}},
			"submitted before":                 {api.JobQuery{Before: epoch.Add(2 * time.Second)}, []string{"Runs", "waits_100%"}},
			"all at once": {api.JobQuery{User: "bob", VirtualCluster: "nlp", Keyword: "o", States: []string{api.Succeeded, api.Failed},
				Since: epoch, Before: epoch.Add(time.Hour)}, []string{"ok"}},
			"none": {api.JobQuery{User: "' OR 1=1 --"}, []string{}},
		} {
			t.Run(name, func(t *testing.T) {
				for _, limit := range []int{0, 1, 2} {
					c.q.Limit = limit
					got, err := walk(t.Context(), s, c.q, func() {})
					require.NoError(t, err)
					assert.Equal(t, c.want, jobNames(got), "pages of %d", limit)
				}
			})
		}
	})
}

func TestAQuestionWithoutSenseIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		for _, q := range []api.JobQuery{{Limit: -1}, {Limit: 1001}, {Cursor: "???"}, {Cursor: "YWJj"}} {
			_, err := s.Jobs(t.Context(), q)
			require.ErrorIs(t, err, archive.ErrBadQuery)
		}
	})
}

// A list is read page by page, while jobs are added, changed or removed. Every job that existed all the time must be on exactly one page.
func TestAWalkTellsEachOldJobOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++
			user := fmt.Sprintf("user-%d", round) // its own list within one database
			added := 0
			add := func(second int) string {
				added++
				f := job(user, fmt.Sprintf("job-%d", added), second, 1)
				require.NoError(rt, s.SaveJob(t.Context(), f))
				return f.Annotations[v1.AnnotationJobName]
			}
			var old []string
			// The jobs have few different times, because in practice many jobs are submitted in the same second.
			for _, second := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 30).Draw(rt, "old") {
				old = append(old, add(second))
			}
			q := api.JobQuery{User: user, Limit: rapid.IntRange(1, 7).Draw(rt, "limit")}
			got, err := walk(t.Context(), s, q, func() {
				for _, second := range rapid.SliceOfN(rapid.IntRange(0, 7), 0, 3).Draw(rt, "new") {
					add(second)
				}
			})
			require.NoError(rt, err)
			count := map[string]int{}
			for _, name := range jobNames(got) {
				count[name]++
				require.Equal(rt, 1, count[name], "%s occurs twice", name)
			}
			for _, name := range old {
				require.Equal(rt, 1, count[name], "%s is missing", name)
			}
		})
	})
}

// fill saves n finished jobs of a hundred users in five virtual clusters.
func fill(t testing.TB, s archive.Store, n int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	codes := []int32{0, 0, 0, 1, -210}
	const workers = 64
	done := make(chan error, workers)
	todo := make(chan *v1.Framework, workers)
	for range workers {
		go func() {
			var err error
			for f := range todo {
				if err == nil {
					err = s.SaveJob(t.Context(), f)
				}
			}
			done <- err
		}()
	}
	for i := range n {
		f := job(fmt.Sprintf("user%02d", random.IntN(100)), fmt.Sprintf("experiment-%d", i), i, 1)
		f.Labels[v1.LabelVC] = fmt.Sprintf("team%d", random.IntN(5))
		todo <- end(run(f, 0, i+10), codes[random.IntN(len(codes))], i+20, false)
	}
	close(todo)
	for range workers {
		require.NoError(t, <-done)
	}
}

// BenchmarkListPage reads pages of an archive with 100,000 jobs.
func BenchmarkListPage(b *testing.B) {
	for name, place := range map[string]func(testing.TB) place{"SQLite": sqlitePlace, "PostgreSQL": postgresPlace} {
		b.Run(name, func(b *testing.B) {
			s := place(b).open(b)
			fill(b, s, 100_000)
			deep := api.JobQuery{Limit: 1000}
			for range 50 {
				page, err := s.Jobs(b.Context(), deep)
				require.NoError(b, err)
				deep.Cursor = page.Next
			}
			deep.Limit = 100
			for _, c := range []struct {
				name string
				q    api.JobQuery
			}{
				{"first", api.JobQuery{}}, {"in_the_middle", deep}, {"of_a_user", api.JobQuery{User: "user42"}}, {"failed", api.JobQuery{States: []string{api.Failed}}},
				{"failed_or_stopped", api.JobQuery{States: []string{api.Failed, api.Stopped}}}, {"of_a_virtual_cluster", api.JobQuery{VirtualCluster: "team3"}},
				{"with_a_rare_word", api.JobQuery{Keyword: "experiment-4711"}}, {"with_a_word_that_is_nowhere", api.JobQuery{Keyword: "nowhere"}},
			} {
				b.Run(c.name, func(b *testing.B) {
					for b.Loop() {
						if _, err := s.Jobs(b.Context(), c.q); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// BenchmarkSaveJob saves jobs with four tasks each that end at the same time.
func BenchmarkSaveJob(b *testing.B) {
	for name, place := range map[string]func(testing.TB) place{"SQLite": sqlitePlace, "PostgreSQL": postgresPlace} {
		b.Run(name, func(b *testing.B) {
			s := place(b).open(b)
			var n atomic.Int64
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := int(n.Add(1))
					if err := s.SaveJob(b.Context(), end(run(job("alice", fmt.Sprint("job-", i), i, 4), 0, i), 0, i+10, false)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
