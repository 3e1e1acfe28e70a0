package people_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"net/http/httptest"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

func TestGrantsOfAllGroupsCountTogether(t *testing.T) {
	c := open(t)
	for _, g := range []v1.GroupSpec{
		{Name: "vision", VirtualClusters: []v1.VCGrant{{Name: "vision", MaxPriority: "oppo"}}, Storages: []string{"data", "shared"}, Pages: []string{"monitoring"}},
		{Name: "leads", VirtualClusters: []v1.VCGrant{{Name: "vision", SeeJobs: true, MaxPriority: "crit"}, {Name: "nlp", HostNetwork: true}}, Storages: []string{"shared"}},
		{Name: "outside", External: []v1.ExternalGroup{{Provider: "lab", Name: "gpu-users"}}, AllVirtualClusters: true},
	} {
		_, err := c.PutGroup(t.Context(), &v1.Group{Spec: g})
		require.NoError(t, err)
	}
	ann := c.add("ann", "vision", "leads")
	assert.Equal(t, rules.Grants{
		VCs:      map[string]rules.VC{"vision": {SeeJobs: true, MaxPriority: "crit"}, "nlp": {HostNetwork: true}},
		Storages: []string{"shared", "data"}, Pages: map[string]bool{"monitoring": true},
	}, ann.Grants)
	assert.Equal(t, []string{"leads", "vision"}, ann.Groups)
	assert.Equal(t, []string{"default"}, c.add("bob").Groups, "who is added without groups is in default")
	assert.Equal(t, []string{"ann"}, c.Members("leads"))

	// The status contains the groups that a provider reports. Only the server writes the status.
	bob, err := c.Update(t.Context(), "bob", func(s *v1.UserSpec) error { s.Identities = []v1.Identity{{Provider: "lab", Subject: "7"}}; return nil })
	require.NoError(t, err)
	bob, err = c.RecordAnswer(t.Context(), bob, v1.External{Provider: "lab", Subject: "7", Groups: []string{"gpu-users", "gpu-users"}, CheckedAt: metav1.Now()})
	require.NoError(t, err)
	assert.True(t, bob.Grants.AllVCs)
	assert.Equal(t, []string{"default", "outside"}, bob.Groups)
}

func TestWrongPeopleAreRefusedWithTheField(t *testing.T) {
	c := open(t)
	c.add("ann")
	c.add("gone")
	require.NoError(t, c.Remove(t.Context(), "gone"))
	for name, test := range map[string]struct {
		user people.NewUser
		is   error
		says string
	}{
		"no name":                {people.NewUser{}, people.ErrInvalid, "name:"},
		"a name with a space":    {people.NewUser{Name: "a b"}, people.ErrInvalid, "name:"},
		"a name of a path":       {people.NewUser{Name: "../ann"}, people.ErrInvalid, "name:"},
		"a name that means more": {people.NewUser{Name: "Me"}, people.ErrInvalid, "stands for something else"},
		"a name that is taken":   {people.NewUser{Name: "ann"}, people.ErrExists, "ann"},
		"in another case":        {people.NewUser{Name: "ANN"}, people.ErrExists, "differs in case only"},
		"of a removed person":    {people.NewUser{Name: "gone"}, people.ErrExists, "was removed"},
		"no such group":          {people.NewUser{Name: "bob", Groups: []string{"none"}}, people.ErrNoGroup, "none"},
		"a weak password":        {people.NewUser{Name: "bob", Password: "short"}, people.ErrInvalid, "too short"},
		"no address":             {people.NewUser{Name: "bob", Email: "Bob <bob@x>"}, people.ErrInvalid, "email:"},
		"a hash of nothing":      {people.NewUser{Name: "bob", Hash: "x"}, people.ErrInvalid, "hash"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Add(t.Context(), test.user)
			assert.ErrorIs(t, err, test.is)
			assert.ErrorContains(t, err, test.says)
		})
	}
	assert.Len(t, c.Users(), 1)
	_, err := c.Update(t.Context(), "ann", func(s *v1.UserSpec) error {
		s.Name = "eve"
		return nil
	})
	assert.ErrorContains(t, err, "keeps the name")
	_, err = c.Update(t.Context(), "ann", func(s *v1.UserSpec) error {
		s.SSHKeys = []v1.SSHKey{{Title: "mine", Value: "-----BEGIN OPENSSH PRIVATE KEY-----"}}
		return nil
	})
	assert.ErrorContains(t, err, "ssh keys")
	assert.NotContains(t, err.Error(), "BEGIN", "it may be a private key")
	_, err = c.Update(t.Context(), "nn", func(*v1.UserSpec) error { return nil })
	assert.ErrorIs(t, err, people.ErrNoUser)
}

func TestAnObjectMadeByHandTakesNoOnesName(t *testing.T) {
	c := open(t)
	ann := c.add("ann", "administrators")
	d := watching(t)
	// Creation timestamps have a precision of one second.
	require.Eventually(t, func() bool { return time.Since(ann.User.CreationTimestamp.Time) > 1100*time.Millisecond }, time.Minute, 10*time.Millisecond)
	make := func(object string, spec map[string]any) error {
		_, err := c.api.Resource(v1.Users).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "paictl.openpai.org/v1", "kind": "User", "metadata": map[string]any{"name": object}, "spec": spec}}, metav1.CreateOptions{})
		return err
	}
	require.NoError(t, make("mallory", map[string]any{"name": "ann", "groups": []any{"administrators"}}))
	require.NoError(t, make(v1.ObjectName("ANN"), map[string]any{"name": "ANN"}))
	require.Error(t, make("eve", map[string]any{"name": "eve/../ann"}), "the definition refuses it")
	require.NoError(t, make("zed", map[string]any{"name": "zed"}))
	require.Eventually(t, func() bool { _, err := d.Person("zed"); return err == nil }, 10*time.Second, 5*time.Millisecond)
	assert.Contains(t, d.Ignored()["mallory"], "the object of ann is called ann")
	assert.Contains(t, d.Ignored()[v1.ObjectName("ANN")], "differs from ann in case only")
	assert.Len(t, d.Users(), 2)
	_, err := d.Person("ANN")
	assert.ErrorIs(t, err, people.ErrNoUser)

	// The condition Valid of the object contains the reason, and later that the object is used again.
	valid := func(object string) string {
		u, err := c.api.Resource(v1.Users).Get(t.Context(), object, metav1.GetOptions{})
		require.NoError(t, err)
		all, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
		require.NoError(t, err)
		if len(all) == 0 {
			return ""
		}
		return fmt.Sprint(all[0].(map[string]any)["status"], all[0].(map[string]any)["message"])
	}
	require.NoError(t, d.WriteConditions(t.Context()))
	require.NoError(t, d.WriteConditions(t.Context()))
	assert.Equal(t, "Falsespec.name: the object of ann is called ann", valid("mallory"))
	assert.Contains(t, valid(v1.ObjectName("ANN")), "Falsespec.name: it differs from ann")
	assert.Empty(t, valid("ann"))
	require.NoError(t, c.api.Resource(v1.Users).Delete(t.Context(), "ann", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { _, err := d.Person("ANN"); return err == nil }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, d.WriteConditions(t.Context()))
	assert.Equal(t, "True", valid(v1.ObjectName("ANN")))
}

func TestNamesOfObjectsTellPeopleApart(t *testing.T) {
	names := []string{"ann", "Ann", "ANN", "a.b", "a-b", "a_b", "x-61", "x-", "X-61", "x-416e6e", "0", "xyz", "x"}
	seen := map[string]string{}
	for _, name := range names {
		object := v1.ObjectName(name)
		assert.Empty(t, seen[object], name)
		seen[object] = name
		if v1.ValidName(name) {
			back, ok := v1.NameOf(object)
			assert.True(t, ok, name)
			assert.Equal(t, name, back)
		}
	}
	for _, object := range []string{"x-616e6e", "x-zz", "x-", "x-2e2e2f", "Ann"} {
		_, ok := v1.NameOf(object)
		assert.False(t, ok, "%s is no name's object", object)
	}
}

func TestAnotherReplicaFollowsWithinASecond(t *testing.T) {
	c := open(t)
	d := watching(t)
	changes, stop := d.Changed()
	defer stop()
	c.add("ann")
	begin := time.Now()
	require.Eventually(t, func() bool { _, err := d.Person("ann"); return err == nil }, time.Minute, time.Millisecond)
	t.Logf("after %s", time.Since(begin))
	select {
	case change := <-changes:
		assert.Equal(t, "ann", change.User)
	case <-time.After(time.Second):
		t.Error("nothing was told")
	}
	before, err := d.Person("ann")
	require.NoError(t, err)
	require.NoError(t, c.Disable(t.Context(), "ann", true))
	require.Eventually(t, func() bool { p, err := d.Person("ann"); return err == nil && p.Disabled }, time.Minute, time.Millisecond)
	assert.False(t, before.Disabled, "a person doesn't change under who has it")
	require.NoError(t, c.Remove(t.Context(), "ann"))
	require.Eventually(t, func() bool { _, err := d.Person("ann"); return errors.Is(err, people.ErrNoUser) }, time.Minute, time.Millisecond)
}

// front returns the configuration of a proxy in front of the API server, and a switch that disconnects the proxy.
func front(t *testing.T) (config *rest.Config, cut *atomic.Bool) {
	t.Helper()
	c := kubetest.Start(t)
	target, err := url.Parse(c.Server)
	require.NoError(t, err)
	transport, err := rest.TransportFor(c.Config)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	cut = &atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			<-r.Context().Done() // as a machine that is gone: no answer
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}, cut
}

func TestWhatWasNotConfirmedIsStaleAndComesBack(t *testing.T) {
	c := open(t)
	c.add("ann")
	config, cut := front(t)
	d, err := people.Open(config, people.Options{})
	require.NoError(t, err)
	assert.ErrorIs(t, d.Fresh(), people.ErrStale, "nothing was read")
	done := make(chan struct{})
	go func() { _ = d.Run(t.Context()); close(done) }()
	t.Cleanup(func() { <-done })
	require.Eventually(t, func() bool { return d.Fresh() == nil }, 10*time.Second, 10*time.Millisecond)
	cut.Store(true)
	require.Eventually(t, func() bool { return d.Fresh() != nil }, people.StaleAfter+5*time.Second, 10*time.Millisecond)
	assert.ErrorIs(t, d.Fresh(), people.ErrUnavailable)
	_, err = d.Person("ann")
	assert.NoError(t, err, "who asks decides what to do with it")
	cut.Store(false)
	require.Eventually(t, func() bool { return d.Fresh() == nil }, 10*time.Second, 10*time.Millisecond)
}

func TestTheLastAdministratorStays(t *testing.T) {
	c := open(t)
	there, err := c.HasAdministrator(t.Context())
	require.NoError(t, err)
	assert.False(t, there)
	c.add("ann", "administrators")
	_, err = c.Add(t.Context(), people.NewUser{Name: "nopassword", Groups: []string{"administrators"}})
	require.NoError(t, err)
	c.add("out", "administrators")
	require.NoError(t, c.Disable(t.Context(), "out", true))
	leave := func(s *v1.UserSpec) error { s.Groups = []string{"default"}; return nil }
	for what, err := range map[string]error{
		"remove":                           c.Remove(t.Context(), "ann"),
		"disable":                          c.Disable(t.Context(), "ann", true),
		"leave":                            second(c.Update(t.Context(), "ann", leave)),
		"a group that grants it no longer": second(c.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "administrators"}})),
	} {
		assert.ErrorIs(t, err, people.ErrLastAdministrator, what)
	}
	assert.Error(t, c.DeleteGroup(t.Context(), "administrators"))
	assert.ErrorIs(t, c.DeleteGroup(t.Context(), "default"), people.ErrProtected)
	_, err = c.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "other", Administrator: true}})
	require.NoError(t, err)
	assert.ErrorIs(t, c.DeleteGroup(t.Context(), "administrators"), people.ErrLastAdministrator)
	c.add("bob", "other")
	require.NoError(t, c.DeleteGroup(t.Context(), "administrators"))
	ann, err := c.Person("ann")
	require.NoError(t, err)
	assert.Empty(t, ann.User.Spec.Groups, "members leave a group that is deleted")
	assert.False(t, ann.Grants.Administrator)
	assert.ErrorIs(t, c.Remove(t.Context(), "bob"), people.ErrLastAdministrator)
}

func second[T any](_ T, err error) error { return err }

func TestOfFiftyAdministratorsWhoRemoveEachOtherOneStays(t *testing.T) {
	c := open(t)
	const n = 50
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { // not the hash of a real password; only its existence counts
			add := people.NewUser{Name: fmt.Sprintf("admin%d", i), Groups: []string{"administrators"},
				Hash: "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"}
			_, err := c.Add(t.Context(), add)
			for errors.Is(err, people.ErrUnavailable) { // on a busy machine: too many changes at once
				_, err = c.Add(t.Context(), add)
			}
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	var directories []*people.Directory // as many replicas
	for range 5 {
		d, err := people.Open(kubetest.Start(t).Config, people.Options{})
		require.NoError(t, err)
		directories = append(directories, d)
	}
	var removed, kept atomic.Int32
	for i := range n {
		wg.Go(func() {
			err := people.ErrUnavailable
			for errors.Is(err, people.ErrUnavailable) { // as above
				err = directories[i%5].Remove(t.Context(), fmt.Sprintf("admin%d", i))
			}
			switch {
			case err == nil:
				removed.Add(1)
			case errors.Is(err, people.ErrLastAdministrator):
				kept.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, n-1, removed.Load())
	assert.EqualValues(t, 1, kept.Load())
	there, err := c.HasAdministrator(t.Context())
	require.NoError(t, err)
	assert.True(t, there)
}

func TestAHolderOfTheLeaseWhoIsGoneIsWaitedFor(t *testing.T) {
	c := open(t)
	c.add("ann")
	leases := kubetest.Start(t).Client.CoordinationV1().Leases(v1.Namespace)
	require.NoError(t, c.Disable(t.Context(), "ann", true))
	l, err := leases.Get(t.Context(), v1.AdministratorsLease, metav1.GetOptions{})
	require.NoError(t, err)
	gone := "gone"
	l.Spec.HolderIdentity = &gone
	_, err = leases.Update(t.Context(), l, metav1.UpdateOptions{})
	require.NoError(t, err)
	begin := time.Now()
	require.NoError(t, c.Disable(t.Context(), "ann", false))
	assert.Greater(t, time.Since(begin), 14*time.Second)
}

func TestARemovedPersonLeavesTheNameAndNothingElse(t *testing.T) {
	c := open(t)
	c.add("ann")
	_, err := c.MergeExtension(t.Context(), "ann", people.Extension{"a": json.RawMessage(`1`), "b": json.RawMessage(`{"c":2}`)})
	require.NoError(t, err)
	got, err := c.MergeExtension(t.Context(), "ann", people.Extension{"a": json.RawMessage(`null`), "d": json.RawMessage(`"x"`)})
	require.NoError(t, err)
	assert.Equal(t, people.Extension{"b": json.RawMessage(`{"c":2}`), "d": json.RawMessage(`"x"`)}, got)
	ann, err := c.Person("ann")
	require.NoError(t, err)
	require.NoError(t, c.Remove(t.Context(), "ann"))
	secrets := kubetest.Start(t).Client.CoreV1().Secrets(v1.Namespace)
	list, err := secrets.List(t.Context(), metav1.ListOptions{LabelSelector: v1.LabelUser + "=ann"})
	require.NoError(t, err)
	assert.Empty(t, list.Items)
	assert.ErrorIs(t, c.Remove(t.Context(), "ann"), people.ErrNoUser)
	again, err := c.Add(t.Context(), people.NewUser{Name: "ann", TakeOver: true})
	require.NoError(t, err)
	assert.NotEqual(t, ann.UID, again.UID)
	w, err := c.Password(t.Context(), again)
	require.NoError(t, err)
	assert.Nil(t, w)
	_, err = c.ByUID(ann.UID)
	assert.ErrorIs(t, err, people.ErrNoUser)
}

func TestAChangedPasswordEndsSessions(t *testing.T) {
	c := open(t)
	ann := c.add("ann")
	before, err := c.Password(t.Context(), ann)
	require.NoError(t, err)
	assert.EqualValues(t, 0, before.Sessions)
	require.NoError(t, c.SetPassword(t.Context(), "ann", good+" two"))
	ann, err = c.Person("ann")
	require.NoError(t, err)
	after, err := c.Password(t.Context(), ann)
	require.NoError(t, err)
	assert.EqualValues(t, 1, ann.Sessions)
	assert.EqualValues(t, 1, after.Sessions)
	assert.NotEqual(t, before.Hash, after.Hash)
	before.Failures = 3
	written, err := c.StorePassword(t.Context(), ann, before)
	require.NoError(t, err)
	assert.False(t, written, "what was read before doesn't bring an old password back")
	now, err := c.Password(t.Context(), ann)
	require.NoError(t, err)
	assert.Equal(t, after.Hash, now.Hash)
	assert.ErrorIs(t, c.SetPassword(t.Context(), "ann", "ann"), people.ErrInvalid)
}

func TestTheCodeOfTheFirstAdministratorWorksOnce(t *testing.T) {
	c := open(t)
	old, _, err := c.OfferFirst(t.Context())
	require.NoError(t, err)
	code, until, err := c.OfferFirst(t.Context())
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(24*time.Hour), until, time.Minute)
	n := people.NewUser{Name: "ann", Password: good}
	for what, code := range map[string]secret.String{"an older one": old, "none": "", "a part": code[:20]} {
		_, err := c.UseFirst(t.Context(), code, n)
		assert.ErrorIs(t, err, people.ErrCode, what)
	}
	_, err = c.UseFirst(t.Context(), code, people.NewUser{Name: "ann", Password: "weak"})
	assert.ErrorIs(t, err, people.ErrInvalid, "and the code stays")
	var wg sync.WaitGroup
	var made atomic.Int32
	for i := range 5 {
		wg.Go(func() {
			_, err := c.UseFirst(t.Context(), code, people.NewUser{Name: fmt.Sprintf("ann%d", i), Password: good})
			if err == nil {
				made.Add(1)
				return
			}
			assert.ErrorIs(t, err, people.ErrCode)
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, made.Load())
	assert.True(t, c.Users()[0].Grants.Administrator)
	none, _, err := c.OfferFirst(t.Context())
	require.NoError(t, err)
	assert.False(t, none.IsSet(), "there is one")
}

func TestAGroupOfAFormerNameHasNoMembers(t *testing.T) {
	c := open(t)
	_, err := c.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team"}})
	require.NoError(t, err)
	c.add("ann", "team")
	// The group is deleted without paictl, so its member still refers to the group.
	require.NoError(t, c.api.Resource(v1.Groups).Delete(t.Context(), "team", metav1.DeleteOptions{}))
	require.NoError(t, c.Load(t.Context()))
	ann, err := c.Person("ann")
	require.NoError(t, err)
	assert.Empty(t, ann.Groups, "a group that isn't there grants nothing")
	_, err = c.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team", AllVirtualClusters: true}})
	require.NoError(t, err)
	assert.Empty(t, c.Members("team"))
}
