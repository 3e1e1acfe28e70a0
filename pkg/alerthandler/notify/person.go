package notify

import (
	"slices"
	"time"

	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// Person holds the data about a person that notices need.
type Person struct {
	Name string
	// Address is the mail address. It is empty for people without an address and for people who can't sign in.
	Address string
	// Chosen holds the person's choices. Nil means the defaults.
	Chosen *peoplev1.Notifications
	// Groups holds the names of the groups that the person is in.
	Groups []string
	// Administrator reports whether the person sees the figures of all people.
	Administrator bool
}

func (p *Person) choices() *peoplev1.Notifications {
	if p.Chosen != nil {
		return p.Chosen
	}
	return peoplev1.DefaultNotifications()
}

// requires reports whether people may not turn off a kind of notice.
func (c *Config) requires(e peoplev1.NoticeEvent) bool { return slices.Contains(c.Required, e) }

// channels returns the receivers of a person's notices. A required notice is also sent by mail if the person has turned mail off, because a webhook
// may be broken.
func (c *Config) channels(p *Person, at time.Time, required bool) (out []Receiver) {
	chosen := p.choices()
	if c.SMTP.Host != "" && (required || !chosen.NoMail && chosen.Counts(peoplev1.FromMail, at)) {
		out = append(out, Receiver{Person: p.Name, Address: p.Address})
	}
	if c.PersonalWebhooks && chosen.Webhook != "" && chosen.Counts(peoplev1.FromWebhook, at) {
		out = append(out, Receiver{Person: p.Name, OwnWebhook: true})
	}
	return out
}

// chosen returns the receivers of a person's notices about an event. It returns nil unless the person has chosen, or the configuration requires, at
// least one of the kinds.
func (c *Config) chosen(p *Person, at time.Time, kinds ...peoplev1.NoticeEvent) []Receiver {
	if slices.ContainsFunc(kinds, c.requires) {
		return c.channels(p, at, true)
	}
	n := p.choices()
	if !slices.ContainsFunc(kinds, func(e peoplev1.NoticeEvent) bool { return n.Gets(e) && n.Counts(string(e), at) }) {
		return nil
	}
	return c.channels(p, at, false)
}

// test returns the requested test message for each channel of a person.
func (c *Config) test(p *Person) (out []Notice) {
	if p.Chosen == nil || p.Chosen.Test == nil {
		return nil
	}
	n := Notice{ID: TestID(p.Name, p.Chosen.Test.Time), At: p.Chosen.Test.Time, Urgent: true, Subject: c.subject("test message"),
		Text: paragraphs("This is the test message that was requested with \"paictl notify test\" at "+at(p.Chosen.Test.Time)+".", "Notices about your jobs arrive here.")}
	for _, to := range c.channels(p, n.At, len(c.Required) > 0) {
		one := n
		one.To = to
		out = append(out, one)
	}
	return out
}

// TestID returns the ID of a person's test message.
func TestID(name string, at time.Time) string {
	return "test/" + name + "/" + at.UTC().Format(time.RFC3339)
}

// TestResult is the state of a person's test message on one channel.
type TestResult string

// States of test messages.
const (
	TestWaiting TestResult = "waiting" // not sent yet; it is retried for a day
	TestUnknown TestResult = "unknown" // sent, perhaps
	TestSent    TestResult = "sent"
	TestSkipped TestResult = "skipped" // the person has no valid address
	TestLost    TestResult = "lost"
)

// TestOf returns the states of a person's test message on both channels: by mail and at the person's own webhook. The argument at is the time of the
// request.
func (l *Ledger) TestOf(name string, at time.Time) (mail, own TestResult) {
	of := func(to Receiver) TestResult {
		e, known := l.Entries[entryKey(TestID(name, at), to)]
		switch {
		case !known:
			return TestWaiting
		case e.Result == ResultUnknown:
			return TestUnknown
		}
		return TestResult(e.Result)
	}
	return of(Receiver{Person: name}), of(Receiver{Person: name, OwnWebhook: true})
}
