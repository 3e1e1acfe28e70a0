package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

var start = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

// scene is a test environment for a Notifier, with a channel, a record and a clock.
type scene struct {
	t       *testing.T
	now     time.Time
	world   World
	chosen  map[string]*peoplev1.Notifications
	config  *Config
	stored  []byte
	version int
	// sent holds the sent messages as ADDRESS: SUBJECT.
	sent []string
	last *Message
	// down is the error of Open. answer is the error of Send.
	down, answer error
	// killed is called after each message has been sent.
	killed func()
	// The server breaks the connection for messages to an address in breaks. slow is the time to send a message.
	breaks map[string]bool
	slow   time.Duration
	// jumped reports whether the clock was set a short time ago.
	jumped   bool
	counts   map[string]int
	failures int
	saveErr  error
}

func (s *scene) Open(context.Context) (Session, error) { return s, s.down }
func (*scene) Close()                                  {}

func (s *scene) Send(_ context.Context, address string, m *Message) error {
	s.now = s.now.Add(s.slow)
	if s.breaks[address] {
		return errors.New("EOF")
	}
	if s.answer == nil || errors.Is(s.answer, ErrUnknown) {
		s.sent, s.last = append(s.sent, address+": "+m.Subject), m
	}
	if s.killed != nil {
		s.killed()
	}
	return s.answer
}

func (s *scene) Notices(channel string, r Result, n int) { s.counts[channel+" "+string(r)] += n }
func (s *scene) Failed(string)                           { s.failures++ }

// store is one replica's copy of the record.
type store struct {
	s    *scene
	seen int
}

func (r *store) Load(context.Context) (*Ledger, error) {
	r.seen = r.s.version
	if r.s.stored == nil {
		return nil, nil
	}
	return ParseLedger(r.s.stored)
}

func (r *store) Save(_ context.Context, l *Ledger) error {
	if r.s.saveErr != nil {
		return r.s.saveErr
	}
	if r.seen != r.s.version {
		return ErrReplaced
	}
	data, err := l.Marshal()
	if err != nil {
		return err
	}
	r.s.stored = data
	r.s.version++
	r.seen = r.s.version
	return nil
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, now: start, counts: map[string]int{}, chosen: map[string]*peoplev1.Notifications{}, config: &Config{SMTP: SMTP{Host: "mail"}, PerHour: 4}}
	s.world.Person = func(name string) Person {
		p := Person{Name: name, Chosen: s.chosen[name]}
		if name != "nobody" {
			p.Address = name + "@example.org"
		}
		return p
	}
	s.world.KeepTag = func(string) string { return "keep" }
	s.world.NotifiesOwners = func(string) bool { return false }
	s.world.Opens = func(_ string, from time.Time) time.Time { return from }
	s.replica().round() // the record begins
	s.now = s.now.Add(time.Second)
	return s
}

func (s *scene) look() (*World, error) {
	s.world.Now = s.now
	return &s.world, nil
}

// own returns the channel of a person's own webhook. sent lists its messages with the address ~NAME.
func (s *scene) own(name string) Channel { return &ownHook{s, name} }

type ownHook struct {
	*scene
	name string
}

func (h *ownHook) Open(context.Context) (Session, error) { return h, h.down }

func (h *ownHook) Send(ctx context.Context, _ string, m *Message) error {
	return h.scene.Send(ctx, "~"+h.name, m)
}

type replica struct {
	s *scene
	n *Notifier
}

func (s *scene) replica() *replica {
	return &replica{s, New(Options{Config: s.config, World: s.look, OwnWebhook: s.own, Mail: s, Webhooks: map[string]Channel{"chat": s}, Store: &store{s: s}, Counters: s,
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Now: func() time.Time { return s.now }, Jumped: func() bool { return s.jumped }})}
}

func (r *replica) round() time.Duration {
	r.s.t.Helper()
	after, err := r.n.Round(r.s.t.Context())
	require.NoError(r.s.t, err)
	return after
}

// job adds and returns an Action in its grace period that will stop a job.
func (s *scene) job(i int, owner string) *v1.Action {
	notice, act := metav1.NewTime(s.now), metav1.NewTime(s.now.Add(4*time.Hour))
	a := &v1.Action{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("idle-%d", i), UID: types.UID(fmt.Sprintf("a%d", i))}}
	a.Spec = v1.ActionSpec{Do: v1.OperationStopJob, Job: &v1.Job{Object: "x", UID: types.UID(fmt.Sprintf("j%d", i)), Name: fmt.Sprintf("%s/train%d", owner, i)},
		By: v1.Requester{Kind: v1.ByPolicy, Name: "idle"}, Reason: "its GPUs idle"}
	a.Status = v1.ActionStatus{Phase: v1.PhaseNoticed, NoticeTime: &notice, ActTime: &act}
	s.world.Actions = append(s.world.Actions, a)
	return a
}

func (s *scene) end(a *v1.Action, phase v1.Phase, message string, begun bool) {
	now := metav1.NewTime(s.now)
	a.Status.Phase, a.Status.Message, a.Status.EndTime = phase, message, &now
	if begun {
		a.Status.StartTime = &now
	}
}

// The owner gets a mail before the job is stopped, with the requester, reason, time and remedy. The owner gets another mail after the stop. Each mail
// is sent once.
func TestTheOwnerIsTold(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	r := s.replica()
	r.round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 will be stopped at 2026-11-30 12:00 UTC"}, s.sent)
	for _, part := range []string{"Reason: its GPUs idle", "Requested by: the policy idle", `add the tag "keep"`, "paictl action cancel idle-1"} {
		require.Contains(t, s.last.Text, part)
	}
	r.round()
	s.replica().round()
	require.Len(t, s.sent, 1, "neither this one nor the next one repeats it")
	s.now = s.now.Add(4 * time.Hour)
	s.end(a, v1.PhaseSucceeded, "ann/train1 is being stopped", true)
	s.replica().round()
	require.Equal(t, "ann@example.org: job ann/train1 was stopped", s.sent[1])
	require.Equal(t, 2, s.counts["mail sent"])
}

// A canceled plan has no notice. Only people who got the notice about the plan get a notice about the cancellation.
func TestAWithdrawnPlan(t *testing.T) {
	s := newScene(t)
	told := s.job(1, "ann")
	s.replica().round()
	untold := s.job(2, "bob")
	for _, a := range []*v1.Action{told, untold} {
		s.end(a, v1.PhaseCanceled, "canceled: the alert has ended", false)
	}
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 won't be stopped"}, s.sent[1:])
	require.Contains(t, s.last.Text, "the alert has ended")
}

// A policy that makes dry runs and notifies owners sends one notice for each of its Actions, as long as the job runs.
func TestTheOwnerGetsANoticeAboutADryRun(t *testing.T) {
	s := newScene(t)
	s.world.NotifiesOwners = func(policy string) bool { return policy == "idle" }
	dry := func(i int, owner string) *v1.Action {
		a := s.job(i, owner)
		a.Spec.DryRun, a.Status = true, v1.ActionStatus{}
		s.end(a, v1.PhaseSucceeded, "dry run: it would stop it", false)
		s.world.Jobs = append(s.world.Jobs, Job{UID: a.Spec.Job.UID, User: owner, Name: fmt.Sprintf("train%d", i), State: "RUNNING"})
		return a
	}
	dry(1, "ann")
	dry(2, "bob").Spec.By.Name = "another"
	dry(3, "cid").Spec.By.Kind = v1.ByPerson
	dry(4, "dan").Status.Phase = v1.PhaseRefused
	dry(5, "eve")
	s.world.Jobs[4].Completed = s.now
	dry(6, "fay").Spec.Job.UID = "removed"
	old := metav1.NewTime(s.now.Add(-tellWithin))
	dry(7, "gus").Status.EndTime = &old
	dry(8, "hal").Spec.Do = v1.OperationRequeueJob
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: its GPUs idle"}, s.sent)
	for _, part := range []string{"its GPUs idle.", "job ann/train1 keeps running, because the policy idle", "paictl job stop train1", `add the tag "keep"`} {
		require.Contains(t, s.last.Text, part)
	}
	s.replica().round()
	s.world.Jobs[0].Completed = s.now
	s.replica().round()
	require.Len(t, s.sent, 1, "neither another round nor the end of the job repeats it")
}

// Dry runs cause no notices without that, nor do events before the beginning of the record.
func TestSilence(t *testing.T) {
	s := newScene(t)
	s.job(1, "ann").Spec.DryRun = true
	early := metav1.NewTime(start.Add(-time.Minute))
	s.job(2, "ann").Status.NoticeTime = &early
	s.replica().round()
	require.Empty(t, s.sent)
}

// Administrators and webhooks get notices about machines. Webhooks also get notices about jobs, unless their events exclude them.
func TestReceivers(t *testing.T) {
	s := newScene(t)
	s.config.Administrators = []string{"ops@example.org"}
	s.config.Webhooks = []Webhook{{Name: "chat", Events: []Subject{SubjectMachines}}}
	a := s.job(1, "ann")
	a.Spec.Do, a.Spec.Job, a.Spec.Machine = v1.OperationDrain, nil, &v1.Machine{Name: "n1"}
	s.end(a, v1.PhaseRefused, "2 of 20 machines are out of service", false)
	s.job(2, "bob")
	s.replica().round()
	require.ElementsMatch(t, []string{
		": drain of n1 was refused", "ops@example.org: drain of n1 was refused", "bob@example.org: job bob/train2 will be stopped at 2026-11-30 12:00 UTC",
	}, s.sent)
	require.Equal(t, map[string]int{"mail sent": 2, "chat sent": 1}, s.counts)
}

// The webhook of a group gets notices about jobs of the group's people. The jobs of other people, and jobs without an owner, are not its business.
func TestTheWebhookOfAGroup(t *testing.T) {
	s := newScene(t)
	s.config.SMTP.Host = ""
	s.config.Webhooks = []Webhook{{Name: "chat", Groups: []string{"vision", "speech"}}}
	person := s.world.Person
	s.world.Person = func(name string) Person {
		p := person(name)
		p.Groups = map[string][]string{"ann": {"default", "speech"}, "bob": {"default"}}[name]
		return p
	}
	s.job(1, "ann")
	s.job(2, "bob")
	s.job(3, "cid").Spec.Job.Name = "without-owner"
	a := s.job(4, "ann")
	a.Spec.Do, a.Spec.Job, a.Spec.Machine = v1.OperationDrain, nil, &v1.Machine{Name: "n1"}
	s.end(a, v1.PhaseRefused, "2 of 20 machines are out of service", false)
	s.replica().round()
	require.Equal(t, []string{": job ann/train1 will be stopped at 2026-11-30 12:00 UTC", ": drain of n1 was refused"}, s.sent)
}

// Administrators get a notice about each operation on a machine that was due and didn't happen. If the alert ended before its notice, the operation
// wasn't due.
func TestOperationsOnMachinesThatDidNotHappen(t *testing.T) {
	for phase, want := range map[v1.Phase][]string{
		v1.PhaseRefused: {"ops@example.org: uncordon of n1 was refused"}, v1.PhaseExpired: {"ops@example.org: uncordon of n1 expired"}, v1.PhaseCanceled: nil,
	} {
		s := newScene(t)
		s.config.Administrators = []string{"ops@example.org"}
		a := s.job(1, "ann")
		a.Spec.Do, a.Spec.Job, a.Spec.Machine = v1.OperationUncordon, nil, &v1.Machine{Name: "n1"}
		a.Status.NoticeTime, a.Status.ActTime = nil, nil
		s.end(a, phase, "n1 stays cordoned: GPU 3: XID 79", false)
		s.replica().round()
		require.Equal(t, want, s.sent)
		if want != nil {
			require.Contains(t, s.last.Text, "Result: n1 stays cordoned: GPU 3: XID 79")
		}
	}
}

// A receiver without an address is skipped and counted only once.
func TestPeopleWithoutAnAddress(t *testing.T) {
	s := newScene(t)
	s.job(1, "nobody")
	s.replica().round()
	s.replica().round()
	require.Empty(t, s.sent)
	require.Equal(t, map[string]int{"mail skipped": 1}, s.counts)
}

// If a mail server is unavailable for hours, all mails are sent later. Few attempts are made in between.
func TestAMailServerThatIsAway(t *testing.T) {
	for name, cause := range map[string]func(*scene, error){
		"no connection":       func(s *scene, err error) { s.down = err },
		"a broken connection": func(s *scene, err error) { s.answer = err },
		"a refused message": func(s *scene, err error) {
			if s.answer = nil; err != nil {
				s.answer = fmt.Errorf("%w: %w", ErrRefused, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			cause(s, errors.New("away"))
			s.job(1, "ann")
			s.job(2, "bob")
			r := s.replica()
			for end := s.now.Add(3 * time.Hour); s.now.Before(end); {
				s.now = s.now.Add(r.round())
				if s.failures == 5 {
					r = s.replica() // a restart doesn't lose notices
				}
			}
			require.Empty(t, s.sent)
			require.Less(t, s.failures, 50)
			cause(s, nil)
			s.now = s.now.Add(lastBackoff)
			r.round()
			require.Len(t, s.sent, 2)
			r.round()
			require.Len(t, s.sent, 2)
		})
	}
}

// If no mail could be sent before the end of the grace period, the notice contains a new time, and Delivery reports when the notice was sent.
func TestANoticeAfterItsTime(t *testing.T) {
	s := newScene(t)
	s.down = errors.New("away")
	a := s.job(1, "ann")
	a.Spec.GraceSeconds = 4 * 3600
	r := s.replica()
	_, known := r.n.Delivery(a.UID)
	require.False(t, known)
	s.now = s.now.Add(time.Second)
	r.round()
	d, known := r.n.Delivery(a.UID)
	require.True(t, known)
	require.Equal(t, Delivery{Waits: true}, d)
	_, known = r.n.Delivery("another")
	require.False(t, known, "the round didn't see it")
	s.now = s.now.Add(5 * time.Hour)
	s.down = nil
	r.round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 will be stopped at 2026-11-30 17:00 UTC"}, s.sent)
	d, _ = r.n.Delivery(a.UID)
	require.Equal(t, Delivery{Sent: s.now.Truncate(time.Second)}, Delivery{d.Waits, d.Sent.UTC()})
	require.Equal(t, s.now.Add(4*time.Hour), a.Acts(s.now))
	s.world.Opens = func(_ string, from time.Time) time.Time { return from.Add(16 * time.Hour) }
	require.Equal(t, s.now.Add(20*time.Hour), (&World{Now: s.now, Opens: s.world.Opens}).acts(a), "the hours of the policy")

	b := s.job(2, "nobody")
	s.now = s.now.Add(time.Second)
	r.round()
	d, known = r.n.Delivery(b.UID)
	require.True(t, known)
	require.Equal(t, Delivery{}, d, "someone without an address isn't waited for")
	b.Spec.By.Kind = v1.ByPerson
	require.Equal(t, b.Status.ActTime.Time, b.Acts(s.now.Add(9*time.Hour)))
}

// If the mail server breaks the connection for one receiver, only that receiver waits. The other receivers still get all of their messages, in any
// order of names.
func TestAReceiverThatBreaksTheConnection(t *testing.T) {
	s := newScene(t)
	s.breaks = map[string]bool{"ann@example.org": true}
	s.job(1, "ann")
	s.job(2, "bob")
	r := s.replica()
	r.round()
	require.Equal(t, []string{"bob@example.org: job bob/train2 will be stopped at 2026-11-30 12:00 UTC"}, s.sent)
	for i, end := 3, s.now.Add(2*time.Hour); s.now.Before(end); i++ {
		s.job(i, fmt.Sprintf("carl%d", i))
		r.round()
		require.Len(t, s.sent, i-1, "nobody else waits")
		s.now = s.now.Add(firstBackoff)
	}
	require.Less(t, s.failures, 12)
	s.breaks, s.sent = nil, nil
	s.now = s.now.Add(lastBackoff)
	r.round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 will be stopped at 2026-11-30 12:00 UTC"}, s.sent)

	s = newScene(t)
	s.breaks = map[string]bool{"ann@example.org": true, "bob@example.org": true}
	for i, name := range []string{"ann", "bob", "carl"} {
		s.job(i, name)
	}
	r = s.replica()
	r.round()
	require.Empty(t, s.sent, "the server may be broken")
	s.now = s.now.Add(firstBackoff)
	r.round()
	s.now = s.now.Add(2 * firstBackoff)
	r.round()
	require.Equal(t, []string{"carl@example.org: job carl/train2 will be stopped at 2026-11-30 12:00 UTC"}, s.sent)
	for i, end := 3, s.now.Add(2*time.Hour); s.now.Before(end); i++ {
		s.now = s.now.Add(10 * time.Minute)
		s.job(i, fmt.Sprintf("carl%d", i))
		r.round()
		require.Len(t, s.sent, i-1, "the two no longer stop the channel")
	}
	require.Less(t, s.failures, 30)
}

// The job isn't stopped until a message was sent. A lost notice, or a notice with an unknown delivery, doesn't count as sent. If a server rejects the
// owner's address, the job is stopped nevertheless.
func TestOnlyASentNoticeEndsTheWait(t *testing.T) {
	for name, c := range map[string]struct {
		cause func(*scene)
		after time.Duration
		waits bool
	}{
		"no server":       {func(s *scene) { s.down = errors.New("away") }, 27 * time.Hour, true},
		"no confirmation": {func(s *scene) { s.answer = fmt.Errorf("%w: time-out", ErrUnknown) }, 27 * time.Hour, true},
		"a person's own webhook that never accepts a message": {func(s *scene) {
			s.config.SMTP.Host, s.config.PersonalWebhooks, s.breaks = "", true, map[string]bool{"~ann": true}
			s.chosen["ann"] = &peoplev1.Notifications{Webhook: "generic"}
		}, 5 * time.Hour, false},
		"no such address":          {func(s *scene) { s.answer = fmt.Errorf("%w: 550", ErrAddress) }, 5 * time.Hour, false},
		"no such address at first": {func(s *scene) { s.answer = fmt.Errorf("%w: 550", ErrAddress) }, 30 * time.Second, true},
		"the disk is full":         {func(s *scene) { s.answer = fmt.Errorf("%w: 452", ErrRefused) }, 5 * time.Hour, true},
		"no server for three days": {func(s *scene) { s.down = errors.New("away") }, 73 * time.Hour, true},
	} {
		s := newScene(t)
		c.cause(s)
		a := s.job(1, "ann")
		r := s.replica()
		for end := s.now.Add(c.after); s.now.Before(end); {
			s.now = s.now.Add(r.round())
		}
		d, known := r.n.Delivery(a.UID)
		require.True(t, known, name)
		require.Equal(t, c.waits, d.Waits, name)
	}
}

// Several rejected messages to a receiver in one session count as one rejection of its address.
func TestSeveralMessagesToARefusedAddress(t *testing.T) {
	s := newScene(t)
	s.answer = fmt.Errorf("%w: 550", ErrAddress)
	var all []*v1.Action
	for i := range 3 {
		all = append(all, s.job(i, "ann"))
	}
	r := s.replica()
	r.round()
	require.Equal(t, 1, s.failures)
	for _, a := range all {
		d, _ := r.n.Delivery(a.UID)
		require.True(t, d.Waits)
	}
}

// A person's second channel accepts the notice hours after the first channel. The time of the first message counts.
func TestTheFirstMessageOfANoticeCounts(t *testing.T) {
	s := newScene(t)
	s.config.PersonalWebhooks, s.config.Required = true, []peoplev1.NoticeEvent{peoplev1.NoticeStopping}
	s.chosen["ann"] = &peoplev1.Notifications{Webhook: "generic"}
	s.breaks = map[string]bool{"~ann": true}
	a := s.job(1, "ann")
	r := s.replica()
	r.round()
	first := s.now
	s.breaks = nil
	s.now = s.now.Add(3*time.Hour + 59*time.Minute)
	r.round()
	require.Len(t, s.sent, 2)
	d, _ := r.n.Delivery(a.UID)
	require.Equal(t, first.Truncate(time.Second), d.Sent.UTC())
}

// If the clock is ahead for one round, no waiting notice is lost.
func TestAWaitingNoticeWhileTheClockIsAhead(t *testing.T) {
	for _, ahead := range []time.Duration{25 * time.Hour, 72 * time.Hour} {
		s := newScene(t)
		s.down = errors.New("away")
		s.job(1, "ann")
		r := s.replica()
		r.round()
		was := s.now
		s.now, s.jumped = was.Add(ahead), true
		r.round()
		s.now, s.down = was.Add(time.Hour), nil
		r.round()
		require.Len(t, s.sent, 1)
	}
}

// A slow channel delays the messages of another channel only for a limited time. All messages of the slow channel are delivered.
func TestASlowChannel(t *testing.T) {
	s := newScene(t)
	s.config.PerHour, s.slow = 100, 15*time.Second
	for i := range 12 {
		s.job(i, fmt.Sprintf("ann%d", i))
	}
	r := s.replica()
	began := s.now
	require.Equal(t, time.Second, r.round())
	require.Len(t, s.sent, 2)
	require.Equal(t, 30*time.Second, s.now.Sub(began))
	for range 5 {
		r.round()
	}
	require.Len(t, s.sent, 12)
	require.Equal(t, map[string]int{"mail sent": 12}, s.counts)
}

// A receiver that is added to the configuration gets no notices about earlier events.
func TestAReceiverThatIsAddedLater(t *testing.T) {
	s := newScene(t)
	s.config.Administrators = []string{"ops@example.org"}
	s.replica().round()
	drain := func(i int) {
		a := s.job(i, "ann")
		a.Spec.Do, a.Spec.Job, a.Spec.Machine = v1.OperationDrain, nil, &v1.Machine{Name: fmt.Sprintf("n%d", i)}
		s.end(a, v1.PhaseSucceeded, "done", true)
	}
	s.now = s.now.Add(time.Minute)
	drain(1)
	s.replica().round()
	s.now = s.now.Add(time.Minute)
	s.config.Administrators = []string{"ops@example.org", "more@example.org"}
	s.config.Webhooks = []Webhook{{Name: "chat"}}
	s.replica().round()
	require.Len(t, s.sent, 1)
	s.now = s.now.Add(time.Minute)
	drain(2)
	s.replica().round()
	require.Len(t, s.sent, 4)

	old, err := ParseLedger([]byte(fmt.Sprintf(`{"since": %d, "entries": {}}`, start.Unix())))
	require.NoError(t, err)
	require.True(t, old.configure([]string{"webhook/chat"}, s.now))
	require.False(t, old.forgets(&Notice{To: Receiver{Webhook: "chat"}, At: start.Add(time.Second)}), "a record of a former release doesn't say since when")
	require.False(t, old.configure([]string{"webhook/chat"}, s.now))
}

// If the clock was temporarily days ahead, notices are still sent before the wrong time.
func TestAClockThatWasAhead(t *testing.T) {
	s := newScene(t)
	s.config.Administrators = []string{"ops@example.org"}
	s.now = s.now.Add(240 * time.Hour)
	s.job(1, "ann")
	s.replica().round()
	require.Len(t, s.sent, 1)
	s.now = start.Add(time.Hour)
	s.world.Actions = nil
	s.replica().round()
	s.now = s.now.Add(time.Minute)
	s.job(2, "ann")
	s.replica().round()
	require.Len(t, s.sent, 2)
}

// A notice that can't be sent for a day is discarded and counts as lost.
func TestANoticeThatCantBeSentIsGivenUp(t *testing.T) {
	s := newScene(t)
	s.down = errors.New("away")
	s.job(1, "ann")
	r := s.replica()
	r.round()
	s.now = s.now.Add(tellWithin + time.Minute)
	r.round()
	s.down = nil
	s.now = s.now.Add(lastBackoff)
	r.round()
	require.Empty(t, s.sent)
	require.Equal(t, map[string]int{"mail lost": 1}, s.counts)
}

type killed struct{}

// If the handler is killed between a message and the write of the record, it sends the message again, but only a limited number of times.
func TestKilledBetweenSendAndRecord(t *testing.T) {
	s := newScene(t)
	s.job(1, "ann")
	s.killed = func() { panic(killed{}) }
	for range 3 * mostTries {
		func() {
			defer func() {
				if r := recover(); r != nil {
					require.IsType(t, killed{}, r)
				}
			}()
			s.replica().round()
		}()
		s.now = s.now.Add(time.Hour)
	}
	require.Len(t, s.sent, mostTries)
	s = newScene(t)
	s.job(1, "ann")
	once := true
	s.killed = func() {
		if once {
			once = false
			panic(killed{})
		}
	}
	require.Panics(t, func() { s.replica().round() })
	r := s.replica()
	r.round()
	r.round()
	require.Len(t, s.sent, 2)
}

// A message with an unknown delivery is sent again, with pauses and only a limited number of times.
func TestUnknownArrival(t *testing.T) {
	s := newScene(t)
	s.job(1, "ann")
	s.answer = fmt.Errorf("%w: x", ErrUnknown)
	r := s.replica()
	for end := s.now.Add(20 * time.Hour); s.now.Before(end); {
		s.now = s.now.Add(r.round())
	}
	require.Len(t, s.sent, mostTries)
	require.Equal(t, 1, s.counts["mail lost"])
}

// No message is sent if the earlier write of the record fails. A message isn't sent again if the later write fails.
func TestTheRecordCantBeWritten(t *testing.T) {
	s := newScene(t)
	s.job(1, "ann")
	r := s.replica()
	s.saveErr = errors.New("the API server is away")
	_, err := r.n.Round(t.Context())
	require.ErrorContains(t, err, "away")
	require.Empty(t, s.sent)
	s.saveErr = nil
	s.killed = func() { s.saveErr = errors.New("the API server is away") }
	_, err = r.n.Round(t.Context())
	require.ErrorContains(t, err, "away")
	require.Len(t, s.sent, 1)
	s.saveErr = nil
	r.round()
	s.replica().round()
	require.Len(t, s.sent, 1)
}

// If two replicas both act as the leader, only one replica sends messages.
func TestTwoReplicas(t *testing.T) {
	s := newScene(t)
	a, b := s.replica(), s.replica()
	a.round()
	b.round()
	s.job(1, "ann")
	a.round()
	_, err := b.n.Round(t.Context())
	require.ErrorIs(t, err, ErrReplaced)
	b.round()
	require.Len(t, s.sent, 1)
}

// In a flood, a person gets only a few mails and one digest an hour, and the record stays small.
func TestAFlood(t *testing.T) {
	s := newScene(t)
	for i := range 1000 {
		s.job(i, "ann")
	}
	s.job(2000, "bob")
	r := s.replica()
	r.round()
	require.Len(t, s.sent, 5)
	require.Contains(t, s.sent, "bob@example.org: job bob/train2000 will be stopped at 2026-11-30 12:00 UTC")
	require.Contains(t, s.sent, "ann@example.org: 997 notices")
	require.Less(t, len(s.stored), 200<<10)
	s.job(3000, "ann")
	s.job(3001, "ann")
	after := r.round()
	require.Len(t, s.sent, 5)
	require.Positive(t, after)
	s.now = s.now.Add(59 * time.Minute)
	r.round()
	require.Len(t, s.sent, 5)
	s.now = s.now.Add(2 * time.Minute)
	r.round()
	require.Len(t, s.sent, 7)
}

// The length of a digest is limited. The digest contains the number of omitted notices.
func TestADigest(t *testing.T) {
	s := newScene(t)
	s.config.PerHour = 1
	for i := range 500 {
		s.job(i, "ann")
	}
	s.replica().round()
	require.Len(t, s.sent, 1)
	require.Less(t, len(s.last.Text), mostText)
	require.Equal(t, mostDigest, strings.Count(s.last.Text, "\n- "))
	require.Contains(t, s.last.Text, "and 400 more")
}

// If the record can't hold all notices, the beginning of the record moves, and no notice is sent twice.
func TestARecordThatIsFull(t *testing.T) {
	l := NewLedger(start)
	for i := range mostEntries + 500 {
		n := Notice{ID: fmt.Sprint(i), To: Receiver{Person: "ann"}, At: start.Add(time.Duration(i) * time.Second)}
		l.finish(&n, ResultSent, start)
	}
	require.True(t, l.prune(start.Add(2*time.Hour)))
	require.Less(t, len(l.Entries), mostEntries)
	data, err := l.Marshal()
	require.NoError(t, err)
	require.Less(t, len(data), 600<<10)
	for i := range mostEntries + 500 {
		require.Empty(t, l.due([]Notice{{ID: fmt.Sprint(i), To: Receiver{Person: "ann"}, At: start.Add(time.Duration(i) * time.Second)}}))
	}
	l.prune(start.Add(100 * time.Hour))
	require.Empty(t, l.Entries)
}

// Names and reasons in notices stay on one line, and can't change the direction or the structure of the text.
func TestHostileNames(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	a.Spec.Job.Name = "ann/x\r\nBcc: eve@example.org\u202e\u2028y"
	a.Spec.Reason = "r\n\nTo keep the job, send your password to eve@example.org\x1b[2J"
	s.replica().round()
	require.Equal(t, "ann@example.org: job ann/x Bcc: eve@example.org y will be stopped at 2026-11-30 12:00 UTC", s.sent[0])
	assert.Contains(t, s.last.Text, "Reason: r To keep the job, send your password to eve@example.org [2J\n")
	assert.NotContains(t, s.last.Text, "\x1b")
}

// Run begins another round when the cluster changes, and ends when its context ends.
func TestRun(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan struct{}, 1)
	s.killed = func() { sent <- struct{}{} }
	touched := make(chan struct{}, 1)
	looked := make(chan struct{}, 100)
	n := New(Options{Config: s.config, World: func() (*World, error) {
		select {
		case looked <- struct{}{}:
		default:
		}
		w := s.world
		return &w, nil
	}, Mail: s, Store: &store{s: s}, Counters: s, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return s.now }})
	done := make(chan struct{})
	s.job(1, "ann")
	go func() { defer close(done); n.Run(ctx, touched) }()
	<-sent
	<-looked
	touched <- struct{}{}
	<-looked
	cancel()
	<-done
}

// Events before the facts are complete get notices as soon as the facts are complete. The record begins when the notifier starts, not with the first
// successful round.
func TestEventsBeforeTheClusterIsKnownAreTold(t *testing.T) {
	s := newScene(t)
	s.stored, s.version = nil, 0
	known := false
	n := New(Options{Config: s.config, World: func() (*World, error) {
		if !known {
			return nil, errors.New("the cluster isn't known yet")
		}
		return &s.world, nil
	}, Mail: s, Store: &store{s: s}, Counters: s, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: func() time.Time { return s.now }})
	after, err := n.Round(t.Context())
	require.ErrorContains(t, err, "isn't known yet")
	require.LessOrEqual(t, after, 5*time.Second)
	s.job(1, "ann")
	s.now = s.now.Add(after)
	known = true
	_, err = n.Round(t.Context())
	require.NoError(t, err)
	require.Len(t, s.sent, 1)
}
