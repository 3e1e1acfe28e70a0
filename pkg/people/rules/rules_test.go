package rules_test

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/people/rules"
)

type line struct {
	rule                           string
	guest, own, sees, other, admin string
	scopes                         string
}

func table(t *testing.T) map[string]line {
	t.Helper()
	f, err := os.Open("testdata/rules.txt")
	require.NoError(t, err)
	defer f.Close()
	out := map[string]line{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		w := strings.Fields(s.Text())
		require.Len(t, w, 7, "%s", s.Text())
		require.NotContains(t, out, w[0])
		out[w[0]] = line{w[0], w[1], w[2], w[3], w[4], w[5], w[6]}
	}
	return out
}

func answer(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, rules.ErrGuest):
		return "401"
	case errors.Is(err, rules.ErrForbidden):
		return "403"
	case errors.Is(err, rules.ErrHidden):
		return "404"
	}
	return err.Error()
}

func ann() *rules.Subject {
	return &rules.Subject{Name: "ann", Grants: rules.Grants{
		VCs: map[string]rules.VC{"shown": {SeeJobs: true}, "quiet": {}}, Storages: []string{"data"}, Pages: map[string]bool{rules.PageMonitoring: true}}}
}

func root() *rules.Subject {
	return &rules.Subject{Name: "root", Grants: rules.Grants{Administrator: true}}
}

var (
	mine = rules.Object{Owner: "ann", VC: "quiet", Storage: "data", Page: rules.PageMonitoring}
	// A thing of another person in a virtual cluster whose jobs ann sees. Its storage and page aren't granted to ann.
	seen  = rules.Object{Owner: "bob", VC: "shown", Storage: "secret", Page: "other", Public: true}
	other = rules.Object{Owner: "bob", VC: "quiet", Storage: "secret", Page: "other"}
)

func TestEachRuleIsAsSpecified(t *testing.T) {
	want := table(t)
	ids := map[string]bool{}
	for _, r := range rules.Table() {
		assert.False(t, ids[r.ID], "%s occurs twice", r.ID)
		ids[r.ID] = true
		assert.Contains(t, want, r.ID, "a rule without a line in testdata/rules.txt")
	}
	for id, w := range want {
		t.Run(id, func(t *testing.T) {
			assert.True(t, ids[id], "a line without a rule")
			assert.Equal(t, w.guest, answer(rules.Decide(id, &rules.Subject{}, mine)), "guest")
			assert.Equal(t, w.guest, answer(rules.Decide(id, nil, rules.Object{})), "guest, and a thing without an owner")
			assert.Equal(t, w.own, answer(rules.Decide(id, ann(), mine)), "own")
			assert.Equal(t, w.sees, answer(rules.Decide(id, ann(), seen)), "sees")
			assert.Equal(t, w.other, answer(rules.Decide(id, ann(), other)), "other")
			assert.Equal(t, w.admin, answer(rules.Decide(id, root(), other)), "admin")
			operator := answer(nil)
			if r, _ := rules.Find(id); r.Subjects == rules.Never {
				operator = answer(rules.ErrHidden)
			}
			for _, as := range []string{"", "ann"} {
				assert.Equal(t, operator, answer(rules.Decide(id, &rules.Subject{Operator: true, Name: as}, other)), "operator")
			}
		})
	}
}

func TestScopesNarrowAndNeverAdd(t *testing.T) {
	letters := map[rules.Scope]string{rules.ScopeRead: "r", rules.ScopeSubmit: "s", rules.ScopeAdmin: "a", rules.ScopeSecrets: "k"}
	for id, w := range table(t) {
		for scope, letter := range letters {
			for _, test := range []struct {
				who   *rules.Subject
				thing rules.Object
			}{{ann(), mine}, {ann(), seen}, {ann(), other}, {root(), other}} {
				session := answer(rules.Decide(id, test.who, test.thing))
				if scope == rules.ScopeSubmit && test.who.Name == "root" && (id == "template.change" || id == "template.remove") {
					session = "403" // of another's, see TestATokenForJobsDoesNotChangeWhatOthersRun
				}
				test.who.Token = rules.Token{ID: "x", Application: true, Scopes: []rules.Scope{scope}}
				got := answer(rules.Decide(id, test.who, test.thing))
				switch {
				case strings.Contains(w.scopes, letter):
					assert.Equal(t, session, got, "%s with %s", id, scope)
				case session != "404" || got == "ok":
					assert.Contains(t, []string{"403", "404"}, got, "%s with %s", id, scope)
				}
			}
		}
		who := ann()
		who.Token = rules.Token{ID: "x", Application: true}
		if w.scopes != "rsak" {
			assert.NotEqual(t, "ok", answer(rules.Decide(id, who, mine)), "%s without a scope", id)
		}
	}
}

func TestAThingWithoutAnOwnerIsNotAnyones(t *testing.T) {
	for _, id := range []string{"job.read", "job.stop", "job.ssh", "alert.read"} {
		assert.Equal(t, "404", answer(rules.Decide(id, ann(), rules.Object{})), id)
	}
	assert.Equal(t, "403", answer(rules.Decide("usage.read", ann(), rules.Object{})), "of the whole cluster")
	assert.Equal(t, "ok", answer(rules.Decide("usage.read", ann(), rules.Object{VC: "quiet"})))
	assert.Equal(t, "403", answer(rules.Decide("job.submit", ann(), rules.Object{})), "no virtual cluster")
	assert.Equal(t, "ok", answer(rules.Decide("job.submit", root(), rules.Object{VC: "any"})))
	assert.Equal(t, "403", answer(rules.Decide("storage.list", root(), rules.Object{})))
	assert.Equal(t, "403", answer(rules.Decide("no.such.rule", root(), rules.Object{})), "what has no rule is refused")
}

func TestASubmissionIsWithinTheGrants(t *testing.T) {
	s := ann()
	s.Groups = []string{"team"}
	s.Grants.VCs["fast"] = rules.VC{MaxPriority: "crit", HostNetwork: true}
	s.Grants.VCs["slow"] = rules.VC{MaxPriority: "oppo"}
	all := ann()
	all.Grants = rules.Grants{AllVCs: true}
	for name, test := range map[string]struct {
		who *rules.Subject
		job rules.Submission
		why string
	}{
		"granted":                        {s, rules.Submission{VCs: []string{"quiet", "shown"}, Priority: "prod", Storages: []string{"data"}, Group: "team"}, ""},
		"no virtual cluster":             {s, rules.Submission{}, "names no virtual cluster"},
		"one of two isn't granted":       {s, rules.Submission{VCs: []string{"quiet", "vision"}}, "vision isn't granted"},
		"crit without a grant":           {s, rules.Submission{VCs: []string{"quiet"}, Priority: "crit"}, "the priority crit isn't granted"},
		"crit with one":                  {s, rules.Submission{VCs: []string{"fast"}, Priority: "crit"}, ""},
		"no priority is prod":            {s, rules.Submission{VCs: []string{"slow"}}, "isn't granted"},
		"within a low one":               {s, rules.Submission{VCs: []string{"slow"}, Priority: "oppo"}, ""},
		"an unknown one":                 {s, rules.Submission{VCs: []string{"fast"}, Priority: "huge"}, "not a priority"},
		"the machines' network":          {s, rules.Submission{VCs: []string{"quiet"}, HostNetwork: true}, "network isn't granted"},
		"the machines' network, granted": {s, rules.Submission{VCs: []string{"fast"}, HostNetwork: true}, ""},
		"another storage":                {s, rules.Submission{VCs: []string{"fast"}, Storages: []string{"data", "secret"}}, "storage secret"},
		"another group's quota":          {s, rules.Submission{VCs: []string{"fast"}, Group: "rich"}, "aren't in the group rich"},
		"every virtual cluster":          {all, rules.Submission{VCs: []string{"vision"}}, ""},
		"but not every priority":         {all, rules.Submission{VCs: []string{"vision"}, Priority: "crit"}, "crit"},
		"an administrator":               {root(), rules.Submission{VCs: []string{"vision"}, Priority: "crit", HostNetwork: true}, ""},
		"an administrator's storages":    {root(), rules.Submission{VCs: []string{"vision"}, Storages: []string{"data"}}, "storage data"},
		"a guest":                        {nil, rules.Submission{VCs: []string{"quiet"}}, "sign in"},
	} {
		t.Run(name, func(t *testing.T) {
			err := rules.Submit(test.who, test.job)
			if test.why == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, test.why)
		})
	}
	s.Token = rules.Token{Application: true, Scopes: []rules.Scope{rules.ScopeRead}}
	assert.ErrorContains(t, rules.Submit(s, rules.Submission{VCs: []string{"quiet"}}), "scope submit")
}

// An operator may submit any job, and sees everything.
func TestAnOperatorSubmitsAndSeesEverything(t *testing.T) {
	s := &rules.Subject{Operator: true, Name: "ann"}
	assert.NoError(t, rules.Submit(s, rules.Submission{VCs: []string{"any"}, Priority: "crit", HostNetwork: true, Storages: []string{"secret"}, Group: "other"}))
	assert.True(t, rules.Visible(&rules.Subject{Operator: true}).All)
	assert.Equal(t, rules.UserView{Whole: true, Extension: true}, rules.ViewUser(s, "bob"))
	assert.True(t, rules.ViewGroup(s, "other"))
}

func TestListsShowWhatCanBeRead(t *testing.T) {
	names := rapid.SampledFrom([]string{"", "ann", "bob", "eve"})
	vcs := rapid.SampledFrom([]string{"", "a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		s := &rules.Subject{Name: names.Draw(t, "subject"), Grants: rules.Grants{
			Administrator: rapid.Bool().Draw(t, "administrator"), AllVCs: rapid.Bool().Draw(t, "all"),
			VCs: rapid.MapOf(vcs, rapid.Custom(func(t *rapid.T) rules.VC { return rules.VC{SeeJobs: rapid.Bool().Draw(t, "sees")} })).Draw(t, "grants"),
		}}
		owner, vc := names.Draw(t, "owner"), vcs.Draw(t, "vc")
		fits := rules.Visible(s).Allows(owner, vc)
		err := rules.Decide("job.read", s, rules.Object{Kind: rules.KindJob, Owner: owner, VC: vc})
		if fits != (err == nil) {
			t.Fatalf("in the list: %v; read: %v", fits, err)
		}
		for _, id := range []string{"job.stop", "job.enter", "job.delete", "job.ssh"} {
			if rules.Decide(id, s, rules.Object{Owner: owner, VC: vc}) == nil && !fits {
				t.Fatalf("%s of a job that isn't seen", id)
			}
		}
	})
}

func TestHowMuchOfAPersonIsSeen(t *testing.T) {
	app := root()
	app.Token = rules.Token{Application: true, Scopes: []rules.Scope{rules.ScopeRead}}
	secrets := root()
	secrets.Token = rules.Token{Application: true, Scopes: []rules.Scope{rules.ScopeRead, rules.ScopeSecrets}}
	assert.Equal(t, rules.UserView{}, rules.ViewUser(nil, ""))
	assert.Equal(t, rules.UserView{Whole: true, Extension: true}, rules.ViewUser(ann(), "ann"))
	assert.Equal(t, rules.UserView{}, rules.ViewUser(ann(), "bob"))
	assert.Equal(t, rules.UserView{Whole: true, Extension: true}, rules.ViewUser(root(), "bob"))
	assert.Equal(t, rules.UserView{Whole: true}, rules.ViewUser(app, "bob"))
	assert.Equal(t, rules.UserView{Whole: true, Extension: true}, rules.ViewUser(secrets, "bob"))
}

func TestScopesAreNamed(t *testing.T) {
	got, err := rules.ParseScopes([]string{"read", "admin", "read"})
	require.NoError(t, err)
	assert.Equal(t, []rules.Scope{rules.ScopeRead, rules.ScopeAdmin}, got)
	_, err = rules.ParseScopes([]string{"write"})
	assert.ErrorContains(t, err, `"write" is not a scope`)
	assert.Equal(t, "crit", rules.Higher("", "crit"))
	assert.Empty(t, rules.Higher("oppo", ""))
}

func TestATemplateIsSharedWithWhomTheAuthorSays(t *testing.T) {
	s := ann()
	s.Groups = []string{"team"}
	for what, test := range map[string]struct {
		rule  string
		thing rules.Object
		want  string
	}{
		"one's group sees it":                      {"template.read", rules.Object{Owner: "bob", Groups: []string{"x", "team"}}, "ok"},
		"one's group doesn't change it":            {"template.change", rules.Object{Owner: "bob", Groups: []string{"team"}}, "403"},
		"another group's isn't there":              {"template.read", rules.Object{Owner: "bob", Groups: []string{"x"}}, "404"},
		"another group's can't be changed, either": {"template.remove", rules.Object{Owner: "bob", Groups: []string{"x"}}, "404"},
		"without an owner it isn't anyone's":       {"template.read", rules.Object{}, "404"},
		"the author of an official example":        {"template.change", rules.Object{Owner: "ann", Public: true, Official: true}, "403"},
	} {
		assert.Equal(t, test.want, answer(rules.Decide(test.rule, s, test.thing)), what)
	}
	assert.Equal(t, "ok", answer(rules.Decide("template.change", root(), rules.Object{Owner: "ann", Official: true})))
}

func TestATemplateOfTheProgramIsReadByAllAndChangedByNobody(t *testing.T) {
	builtIn := rules.Object{Owner: "@catalogue", Public: true, Official: true, BuiltIn: true}
	for _, who := range []*rules.Subject{ann(), root(), {Operator: true}} {
		for _, id := range []string{"template.read", "template.star"} {
			assert.NoError(t, rules.Decide(id, who, builtIn), id)
		}
		for _, id := range []string{"template.change", "template.remove"} {
			assert.ErrorContains(t, rules.Decide(id, who, builtIn), "built in: copy it", id)
		}
	}
	assert.ErrorIs(t, rules.Decide("template.read", &rules.Subject{}, builtIn), rules.ErrGuest)
}

func TestATokenForJobsDoesNotChangeWhatOthersRun(t *testing.T) {
	who := root()
	for _, id := range []string{"template.change", "template.remove"} {
		for _, scopes := range [][]rules.Scope{{rules.ScopeSubmit}, {rules.ScopeSubmit, rules.ScopeAdmin}} {
			who.Token = rules.Token{ID: "x", Application: true, Scopes: scopes}
			want := "403"
			if len(scopes) == 2 {
				want = "ok"
			}
			assert.Equal(t, "ok", answer(rules.Decide(id, who, rules.Object{Owner: "root"})), id)
			assert.Equal(t, want, answer(rules.Decide(id, who, rules.Object{Owner: "ann"})), id)
			assert.Equal(t, want, answer(rules.Decide(id, who, rules.Object{Owner: "root", Official: true})), id)
		}
	}
}
