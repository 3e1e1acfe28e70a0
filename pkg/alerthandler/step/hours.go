package step

import "time"

// Hours holds the hours in which a policy may begin its steps. A nil pointer means all hours.
type Hours struct {
	Zone *time.Location
	// Days is true for each selected day of the week, beginning with Sunday.
	Days [7]bool
	// From and To are times of day in minutes since midnight.
	From, To int
}

// Next returns t if t is within the hours, otherwise the start of the next hours.
func (h *Hours) Next(t time.Time) time.Time {
	if h == nil || h.open(t) {
		return t
	}
	y, m, d := t.In(h.Zone).Date()
	const days = 15 // the change of a clock may leave out the hours of a day
	for i := range days {
		if from := h.begin(y, m, d+i); from.After(t) && h.open(from) {
			return from
		}
	}
	return t.AddDate(0, 0, days) // closed is safer than open
}

// open reports whether a time is within the hours, according to the clock and calendar of the time zone.
func (h *Hours) open(t time.Time) bool {
	local := t.In(h.Zone)
	minute := local.Hour()*60 + local.Minute()
	return h.Days[local.Weekday()] && minute >= h.From && minute < h.To
}

// begin returns the time at which the hours begin on a day. If the clock is set forward past From on that day, begin returns the time of that clock
// change.
func (h *Hours) begin(y int, m time.Month, d int) time.Time {
	t := time.Date(y, m, d, 0, h.From, 0, 0, h.Zone)
	wanted := time.Date(y, m, d, 0, h.From, 0, 0, time.UTC)
	shown := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
	before, after := t.ZoneBounds()
	switch {
	case shown.Before(wanted):
		return after
	case shown.After(wanted):
		return before
	}
	return t
}
