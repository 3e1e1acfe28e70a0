package notify

import "time"

// Weekly is the report about one week.
type Weekly struct {
	// At is the earliest time at which the report is sent.
	At time.Time
	// For holds the people who have chosen the report. Whole returns the figures of all people. Of returns the figures of one person.
	For   []Person
	Whole func() string
	Of    func(name string) string
}

// WeeklyAt returns the time at which the latest weekly report became due: Monday at 08:00 UTC. The report covers the seven days before that Monday.
func WeeklyAt(now time.Time) time.Time {
	const hour = 8
	now = now.UTC()
	days := (int(now.Weekday()) + 6) % 7 // since Monday
	at := time.Date(now.Year(), now.Month(), now.Day()-days, hour, 0, 0, 0, time.UTC)
	if at.After(now) {
		at = at.AddDate(0, 0, -7)
	}
	return at
}

// weekly returns the notices with the weekly report. Administrators get the figures of all people. Other people get their own figures.
func (c *Config) weekly(w *Weekly) (out []Notice) {
	if w == nil {
		return nil
	}
	add := func(to Receiver, body func() string) {
		out = append(out, Notice{ID: "report/" + w.At.UTC().Format(time.DateOnly), At: w.At, To: to, Subject: c.subject("weekly report of GPU hours"), body: body})
	}
	for i := range w.For {
		p := &w.For[i]
		body := w.Whole
		if !p.Administrator {
			name := p.Name
			body = func() string { return w.Of(name) }
		}
		for _, to := range c.channels(p, w.At, false) {
			add(to, func() string { return body() + "\n" + byProfile })
		}
	}
	if c.WeeklyReport && c.SMTP.Host != "" {
		for _, address := range c.Administrators {
			add(Receiver{Address: address}, w.Whole)
		}
	}
	return out
}
