package onetime_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/onetime"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// open returns the stores of two replicas. Their clock is ahead by the duration in now.
func open(t *testing.T, now *atomic.Int64) (c *kube.Cluster, one, two *onetime.Store) {
	t.Helper()
	c = kubetest.Start(t)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	clock := func() time.Time { return time.Now().Add(time.Duration(now.Load())) }
	one, err = onetime.Open(c.Config, clock)
	require.NoError(t, err)
	two, err = onetime.Open(c.Config, clock)
	require.NoError(t, err)
	return c, one, two
}

func TestACodeIsGoodForOneUse(t *testing.T) {
	var skew atomic.Int64
	_, one, two := open(t, &skew)
	id := onetime.ID("a code")
	require.NoError(t, one.Put(t.Context(), &onetime.Entry{Kind: onetime.Code, ID: id, Values: map[string]string{"user": "ann"}, Expires: time.Now().Add(time.Minute)}, onetime.Limit{All: 10}))
	_, err := two.Get(t.Context(), onetime.Device, id)
	require.ErrorIs(t, err, onetime.ErrNone, "it is of another kind")
	var used atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := two.Get(t.Context(), onetime.Code, id)
			if err != nil {
				return
			}
			assert.Equal(t, map[string]string{"user": "ann"}, got.Values)
			if two.Use(t.Context(), got) == nil {
				used.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, int32(1), used.Load())
	_, err = one.Get(t.Context(), onetime.Code, id)
	assert.ErrorIs(t, err, onetime.ErrNone)
}

func TestWhatWasChangedMeanwhileIsNotUsed(t *testing.T) {
	var skew atomic.Int64
	_, one, two := open(t, &skew)
	require.NoError(t, one.Put(t.Context(), &onetime.Entry{Kind: onetime.Device, ID: onetime.ID("x"), Expires: time.Now().Add(time.Minute)}, onetime.Limit{All: 10}))
	a, err := one.Get(t.Context(), onetime.Device, onetime.ID("x"))
	require.NoError(t, err)
	b, err := two.Get(t.Context(), onetime.Device, onetime.ID("x"))
	require.NoError(t, err)
	a.Values["user"] = "ann"
	require.NoError(t, one.Change(t.Context(), a))
	b.Values["user"] = "eve"
	require.ErrorIs(t, two.Change(t.Context(), b), onetime.ErrChanged)
	require.ErrorIs(t, two.Use(t.Context(), b), onetime.ErrNone)
	got, err := two.Get(t.Context(), onetime.Device, onetime.ID("x"))
	require.NoError(t, err)
	assert.Equal(t, "ann", got.Values["user"])
}

func TestCodesExpireAndAreFew(t *testing.T) {
	var skew atomic.Int64
	c, one, two := open(t, &skew)
	put := func(s *onetime.Store, id, user string, life time.Duration) error {
		return s.Put(t.Context(), &onetime.Entry{Kind: onetime.Code, ID: onetime.ID(id), Values: map[string]string{"user": user}, Expires: time.Now().Add(life)}, onetime.Limit{All: 3, Key: "user", Each: 2})
	}
	require.NoError(t, put(one, "1", "ann", time.Minute))
	require.NoError(t, put(one, "2", "ann", time.Minute))
	require.ErrorIs(t, put(two, "3", "ann", time.Minute), onetime.ErrMany, "one person doesn't take all")
	require.NoError(t, put(one, "4", "abe", time.Minute))
	require.ErrorIs(t, put(two, "5", "eve", time.Minute), onetime.ErrMany)
	skew.Store(int64(2 * time.Minute))
	_, err := one.Get(t.Context(), onetime.Code, onetime.ID("1"))
	require.ErrorIs(t, err, onetime.ErrNone)
	require.NoError(t, put(two, "5", "eve", time.Hour))
	require.NoError(t, one.Sweep(t.Context()))
	left, err := c.Client.CoreV1().Secrets(v1.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
	assert.Equal(t, "eve", string(left.Items[0].Data["user"]))
}

func TestManyWhoComeTogetherStayBelowTheLimit(t *testing.T) {
	var skew atomic.Int64
	c, one, two := open(t, &skew)
	var together sync.WaitGroup
	var kept atomic.Int32
	for i := range 40 {
		together.Go(func() {
			err := []*onetime.Store{one, two}[i%2].Put(t.Context(), &onetime.Entry{Kind: onetime.Device, ID: onetime.ID(fmt.Sprint(i)), Values: map[string]string{"network": "lab"}, Expires: time.Now().Add(time.Hour)},
				onetime.Limit{All: 100, Key: "network", Each: 5})
			if err == nil {
				kept.Add(1)
			} else {
				assert.ErrorIs(t, err, onetime.ErrMany)
			}
		})
	}
	together.Wait()
	left, err := c.Client.CoreV1().Secrets(v1.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, left.Items, 5)
	assert.EqualValues(t, 5, kept.Load(), "those that were told so are those that are kept")
}

func TestWhoBeginsManyKeepsNoOneElseOut(t *testing.T) {
	var skew atomic.Int64
	_, one, two := open(t, &skew)
	put := func(s *onetime.Store, id, network, user string, life time.Duration) error {
		return s.Put(t.Context(), &onetime.Entry{Kind: onetime.Device, ID: onetime.ID(id), Values: map[string]string{"network": network, "user": user}, Expires: time.Now().Add(life)},
			onetime.Limit{All: 6, Key: "network", Each: 4, Drop: func(v map[string]string) bool { return v["user"] == "" }})
	}
	require.NoError(t, put(one, "first", "lab", "", time.Minute))
	require.NoError(t, put(one, "answered", "many", "ann", 2*time.Minute))
	for _, id := range []string{"b", "a", "c"} {
		require.NoError(t, put(one, id, "many", "", time.Duration(3+id[0]-'a')*time.Minute))
	}
	require.ErrorIs(t, put(two, "d", "many", "", time.Hour), onetime.ErrMany, "it has as many as one may have")
	require.NoError(t, put(two, "other", "far", "", time.Hour))
	require.NoError(t, put(two, "new", "near", "", time.Hour), "though there are as many as there may be")
	for id, err := range map[string]error{"first": nil, "answered": nil, "a": onetime.ErrNone, "b": nil, "c": nil, "other": nil, "new": nil} {
		_, got := one.Get(t.Context(), onetime.Device, onetime.ID(id))
		require.ErrorIs(t, got, err, id)
	}
}
