package step

import "time"

// Hours are the hours in which a policy begins its steps. None, a nil pointer, are all hours.
type Hours struct {
	Zone *time.Location
	// Days has the days of the week, Sunday first.
	Days [7]bool
	// From and To are hours of a day, in minutes since midnight.
	From, To int
}

// Next returns a time, or when the hours after it begin.
func (h *Hours) Next(t time.Time) time.Time {
	if h == nil {
		return t
	}
	y, m, d := t.In(h.Zone).Date()
	for i := range 8 {
		// The minutes of a day aren't those since its midnight if the clock changes.
		from, to := time.Date(y, m, d+i, 0, h.From, 0, 0, h.Zone), time.Date(y, m, d+i, 0, h.To, 0, 0, h.Zone)
		if !h.Days[from.Weekday()] || !t.Before(to) {
			continue
		}
		if t.Before(from) {
			return from
		}
		return t
	}
	return t
}
