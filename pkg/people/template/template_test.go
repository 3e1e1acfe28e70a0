package template_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const file = `# What it is for.
protocolVersion: 2
name: train
type: job
prerequisites: [{name: i, type: dockerimage, uri: "busybox:1"}]
taskRoles:
  worker: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: ["echo hello"]}
`

// open returns a store for a cluster with the definitions, but without templates.
func open(t *testing.T) (*template.Store, dynamic.ResourceInterface) {
	t.Helper()
	c := kubetest.Start(t)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	api, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	require.NoError(t, api.Resource(v1.Templates).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	return another(t), api.Resource(v1.Templates)
}

func another(t *testing.T) *template.Store {
	t.Helper()
	s, err := template.Open(kubetest.Start(t).Config, template.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context()))
	return s
}

func spec(author, name string) v1.TemplateSpec {
	return v1.TemplateSpec{Name: name, Author: author, Job: file}
}

func add(t *testing.T, s *template.Store, author, name string) *v1.Template {
	t.Helper()
	made, err := s.Add(t.Context(), spec(author, name))
	require.NoError(t, err)
	return made
}

func TestATemplateIsKeptAsItWasWritten(t *testing.T) {
	s, _ := open(t)
	in := v1.TemplateSpec{Name: "Bildklassifikation, groß (v2)", Author: "Ann.B", Type: "data", Summary: "<b>x</b>", Description: "# a\n<script>alert(1)</script>\n", Groups: []string{"b", "a", "b"},
		Tags: []string{"bert"}, Categories: []string{"vision"}, DataType: "nfs", DataURL: "nfs://x/y", Job: file}
	made, err := s.Add(t.Context(), in)
	require.NoError(t, err)
	in.Groups = []string{"a", "b"}
	got, err := another(t).Get(string(made.UID))
	require.NoError(t, err)
	assert.Equal(t, in, got.Spec)
	assert.WithinDuration(t, time.Now(), got.Updated(), time.Minute)
}

func TestNoSecretIsStored(t *testing.T) {
	s, _ := open(t)
	for what, text := range map[string]string{
		"secrets":       file + "secrets: {password: TOP-SECRET} # or OLD-SECRET\n",
		"quoted key":    file + "\"secrets\": {\"password\": \"TOP-SECRET\"}\n",
		"below a key":   file + "secrets: {a: {b: [TOP-SECRET]}}\n",
		"of a registry": strings.Replace(file, "uri: \"busybox:1\"", `uri: "busybox:1", auth: {username: u, password: TOP-SECRET, registryuri: r.example.org}`, 1),
	} {
		t.Run(what, func(t *testing.T) {
			in := spec("ann", what)
			in.Job = text
			made, err := s.Add(t.Context(), in)
			require.NoError(t, err)
			assert.NotContains(t, made.Spec.Job, "SECRET")
			assert.True(t, template.Masked(made.Spec.Job))
			_, found := protocol.Parse("job.yaml", []byte(made.Spec.Job))
			require.Error(t, found.Err(), "it can't be submitted as it is")

			again, err := s.Add(t.Context(), v1.TemplateSpec{Name: what, Author: "bob", Job: made.Spec.Job})
			require.NoError(t, err, "what is masked can be kept again")
			assert.Equal(t, made.Spec.Job, again.Spec.Job)
			_, err = s.Update(t.Context(), string(again.UID), 0, func(t *v1.Template) error { t.Spec.Job = text; return nil })
			require.NoError(t, err)
			got, err := s.Get(string(again.UID))
			require.NoError(t, err)
			assert.NotContains(t, got.Spec.Job, "SECRET")
		})
	}
}

func TestWhatIsWrongChangesNothing(t *testing.T) {
	s, api := open(t)
	mine := add(t, s, "ann", "mine")
	for what, change := range map[string]func(*v1.TemplateSpec){
		"a slash":             func(s *v1.TemplateSpec) { s.Name = "../x" },
		"dots":                func(s *v1.TemplateSpec) { s.Name = ".." },
		"no name":             func(s *v1.TemplateSpec) { s.Name = "" },
		"a line end":          func(s *v1.TemplateSpec) { s.Name = "a\nb" },
		"an escape":           func(s *v1.TemplateSpec) { s.Name = "a\x1b[2Jb" },
		"text turned around":  func(s *v1.TemplateSpec) { s.Name = "a\u202eb" },
		"nothing to see":      func(s *v1.TemplateSpec) { s.Name = "a\u200bb" },
		"no UTF-8":            func(s *v1.TemplateSpec) { s.Name = "a\xff" },
		"a space at the end":  func(s *v1.TemplateSpec) { s.Name = "a " },
		"a long name":         func(s *v1.TemplateSpec) { s.Name = strings.Repeat("a", 101) },
		"an author":           func(s *v1.TemplateSpec) { s.Author = "../ann" },
		"another type":        func(s *v1.TemplateSpec) { s.Type = "x" },
		"a long summary":      func(s *v1.TemplateSpec) { s.Summary = strings.Repeat("a", 1025) },
		"a long description":  func(s *v1.TemplateSpec) { s.Description = strings.Repeat("a", 64<<10+1) },
		"a tag with a comma":  func(s *v1.TemplateSpec) { s.Tags = []string{"a,b"} },
		"many tags":           func(s *v1.TemplateSpec) { s.Tags = strings.Split(strings.Repeat("a ", 20)+"a", " ") },
		"for all and a group": func(s *v1.TemplateSpec) { s.Public, s.Groups = true, []string{"a"} },
	} {
		bad := spec("ann", "other")
		change(&bad)
		_, err := s.Add(t.Context(), bad)
		require.ErrorIs(t, err, people.ErrInvalid, what)
		_, err = s.Update(t.Context(), string(mine.UID), 0, func(t *v1.Template) error { change(&t.Spec); return nil })
		require.ErrorIs(t, err, people.ErrInvalid, what)
	}
	for _, job := range []string{"", "a: [", "name: x", file + "unknown: 1\n", strings.Repeat("# long\n", 40<<10)} {
		bad := spec("ann", "other")
		bad.Job = job
		_, err := s.Add(t.Context(), bad)
		found := strictyaml.Findings{}
		require.ErrorAs(t, err, &found, "%.20q", job)
	}
	_, err := s.Update(t.Context(), string(mine.UID), 0, func(t *v1.Template) error { t.Spec.Author = "bob"; return nil })
	require.ErrorIs(t, err, people.ErrInvalid, "a template keeps its author")
	all, err := api.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	assert.Equal(t, mine.ResourceVersion, all.Items[0].GetResourceVersion())
}

func TestOfManyWhoAddANameOneDoes(t *testing.T) {
	s, _ := open(t)
	var made atomic.Int32
	var wg sync.WaitGroup
	for _, replica := range []*template.Store{s, another(t)} {
		for range 5 {
			wg.Go(func() {
				_, err := replica.Add(t.Context(), spec("ann", "train"))
				if err == nil {
					made.Add(1)
					return
				}
				assert.ErrorIs(t, err, template.ErrExists)
			})
		}
	}
	wg.Wait()
	assert.EqualValues(t, 1, made.Load())
	add(t, s, "bob", "train")
}

func TestANameThatWasGivenUpCanBeTakenAgain(t *testing.T) {
	s, _ := open(t)
	first := add(t, s, "ann", "train")
	_, err := s.Update(t.Context(), string(first.UID), 0, func(t *v1.Template) error { t.Spec.Name = "renamed"; return nil })
	require.NoError(t, err)
	second := add(t, another(t), "ann", "train")
	assert.NotEqual(t, first.UID, second.UID)
	require.NoError(t, s.Load(t.Context()))
	_, err = s.Update(t.Context(), string(second.UID), 0, func(t *v1.Template) error { t.Spec.Name = "renamed"; return nil })
	assert.ErrorIs(t, err, template.ErrExists)
}

func TestOfManyWhoAddANameThatWasGivenUpOneDoes(t *testing.T) {
	s, _ := open(t)
	first := add(t, s, "ann", "train")
	_, err := s.Update(t.Context(), string(first.UID), 0, func(t *v1.Template) error { t.Spec.Name = "renamed"; return nil })
	require.NoError(t, err)
	var made atomic.Int32
	var wg sync.WaitGroup
	for _, replica := range []*template.Store{another(t), another(t), another(t), another(t)} {
		wg.Go(func() {
			if _, err := replica.Add(t.Context(), spec("ann", "train")); err == nil {
				made.Add(1)
			} else {
				assert.ErrorIs(t, err, template.ErrExists)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, made.Load())
	assert.Len(t, another(t).All(), 2)
}

func TestANameIsAnAuthorsOnceWhateverAReplicaHasHeard(t *testing.T) {
	s, _ := open(t)
	first := add(t, s, "ann", "first")
	late := another(t)
	add(t, s, "ann", "second")
	_, err := late.Update(t.Context(), string(first.UID), 0, func(t *v1.Template) error { t.Spec.Name, t.Spec.Summary = "second", "x"; return nil })
	require.ErrorIs(t, err, template.ErrExists)
	late = another(t)
	_, err = s.Update(t.Context(), string(first.UID), 0, func(t *v1.Template) error { t.Spec.Name = "third"; return nil })
	require.NoError(t, err)
	_, err = late.Add(t.Context(), spec("ann", "third"))
	require.ErrorIs(t, err, template.ErrExists)
	names := []string{}
	for _, have := range another(t).All() {
		names = append(names, have.Spec.Name)
		assert.Empty(t, have.Spec.Summary, "the change was undone")
	}
	assert.Equal(t, []string{"second", "third"}, names)
}

func TestNoChangeIsLost(t *testing.T) {
	s, _ := open(t)
	id := string(add(t, s, "ann", "train").UID)
	other := another(t)
	var wg sync.WaitGroup
	for i, replica := range []*template.Store{s, other} {
		wg.Go(func() {
			for k := range 4 {
				assert.NoError(t, replica.Use(t.Context(), id))
				_, err := replica.Star(t.Context(), id, fmt.Sprintf("p%d-%d", i, k), true)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	was, err := s.Star(t.Context(), id, "p0-0", false)
	require.NoError(t, err)
	assert.EqualValues(t, 8, was.Status.Uses)
	assert.Len(t, was.Status.Stars, 7)

	_, err = s.Update(t.Context(), id, was.Generation, func(t *v1.Template) error { t.Spec.Summary = "first"; return nil })
	require.NoError(t, err, "a star is no change of what the author says")
	_, err = other.Update(t.Context(), id, was.Generation, func(t *v1.Template) error { t.Spec.Summary = "second"; return nil })
	require.ErrorIs(t, err, template.ErrChanged)
	require.NotErrorIs(t, err, people.ErrUnavailable)
	got, err := other.Get(id)
	require.NoError(t, err)
	assert.Equal(t, "first", got.Spec.Summary)
	assert.EqualValues(t, 8, got.Status.Uses)
}

func TestANameUsedAgainIsAnotherTemplate(t *testing.T) {
	s, _ := open(t)
	other := another(t)
	old := add(t, s, "ann", "train")
	require.NoError(t, other.Load(t.Context()))
	require.NoError(t, s.Remove(t.Context(), string(old.UID), nil))
	add(t, s, "ann", "train")
	_, err := other.Update(t.Context(), string(old.UID), 0, func(t *v1.Template) error { t.Spec.Summary = "x"; return nil })
	require.ErrorIs(t, err, template.ErrNone)
	require.ErrorIs(t, other.Remove(t.Context(), string(old.UID), nil), template.ErrNone)
	require.ErrorIs(t, other.Use(t.Context(), string(old.UID)), template.ErrNone)
}

func TestWhoLeavesTakesTheirTemplatesAlong(t *testing.T) {
	s, _ := open(t)
	add(t, s, "ann", "one")
	add(t, s, "ann", "two")
	stays := add(t, s, "bob", "one")
	require.NoError(t, another(t).RemoveOf(t.Context(), "ann"))
	require.NoError(t, s.Load(t.Context()))
	require.Len(t, s.All(), 1)
	assert.Equal(t, stays.UID, s.All()[0].UID)
}

func TestAnAuthorHasSoMany(t *testing.T) {
	s, _ := open(t)
	big := spec("ann", "big")
	big.Job += strings.Repeat("# comment\n", 19<<10)
	for i := range 20 {
		big.Name = fmt.Sprintf("big-%d", i)
		if _, err := s.Add(t.Context(), big); err != nil {
			require.ErrorIs(t, err, template.ErrFull)
			assert.GreaterOrEqual(t, i, 10)
			add(t, s, "bob", "small")
			return
		}
	}
	t.Fatal("there is no bound")
}

func TestAnObjectMadeByHandIsReadOrLeftOut(t *testing.T) {
	s, api := open(t)
	made := add(t, s, "ann", "train")
	u, err := api.Get(t.Context(), made.Name, metav1.GetOptions{})
	require.NoError(t, err)
	u.SetName("by-hand")
	u.SetResourceVersion("")
	u.SetUID("")
	u.Object["spec"].(map[string]any)["author"] = "not/a/name"
	_, err = api.Create(t.Context(), u, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "the schema refuses it: %v", err)
	u.Object["spec"].(map[string]any)["author"] = "bob"
	wrong := u.DeepCopy()
	wrong.SetName("wrong")
	wrong.Object["spec"].(map[string]any)["name"] = "$(reboot)"
	_, err = api.Create(t.Context(), wrong, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	watching, err := template.Open(kubetest.Start(t).Config, template.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, watching.Fresh(), people.ErrUnavailable, "it doesn't watch yet")
	go func() { done <- watching.Run(ctx) }()
	require.Eventually(t, func() bool { return watching.Fresh() == nil }, 20*time.Second, 10*time.Millisecond)
	assert.Len(t, watching.All(), 2)
	require.NoError(t, s.Remove(t.Context(), string(made.UID), nil))
	require.Eventually(t, func() bool { return len(watching.All()) == 1 }, 20*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}
