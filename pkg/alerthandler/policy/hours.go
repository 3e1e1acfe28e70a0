package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images have no zones, and neither may machines

	"github.com/openpai/paictl/pkg/alerthandler/step"
)

// Hours defines the hours in which a policy may begin its steps, for example the hours in which people can react.
type Hours struct {
	// Zone is the time zone, such as Europe/Berlin.
	Zone string `json:"zone"`
	// Days holds days of the week, such as mon.
	Days []string `json:"days"`
	// From and To are times of the day, such as 09:00.
	From string `json:"from"`
	To   string `json:"to"`
}

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// check reports errors, and converts the hours to the type of package step.
func (h *Hours) check(at string, add func(path, remedy, format string, args ...any)) *step.Hours {
	out := &step.Hours{}
	var err error
	if out.Zone, err = time.LoadLocation(h.Zone); err != nil || h.Zone == "" || h.Zone == "Local" {
		add(at+".zone", "name one of the IANA database, such as Europe/Berlin or UTC", "%q isn't a time zone", h.Zone)
	}
	if len(h.Days) == 0 {
		add(at+".days", "list them: [mon, tue, wed, thu, fri]", "without a day the policy would never act")
	}
	for i, name := range h.Days {
		day := slices.Index(days, name)
		if day < 0 {
			add(fmt.Sprintf("%s.days[%d]", at, i), "use "+strings.Join(days, ", "), "%q isn't a day", name)
			continue
		}
		out.Days[day] = true
	}
	times := true
	for path, field := range map[string]struct {
		text string
		to   *int
	}{".from": {h.From, &out.From}, ".to": {h.To, &out.To}} {
		if *field.to, err = minutes(field.text); err != nil {
			add(at+path, "write it as 09:00", "%q isn't a time of the day", field.text)
			times = false
		}
	}
	if times && out.From >= out.To {
		add(at+".to", "set a later time; for hours after midnight make two policies", "%s isn't after %s", h.To, h.From)
	}
	return out
}

// minutes returns the minutes from midnight to a time of day. 24:00 is the end of the day.
func minutes(text string) (int, error) {
	if text == "24:00" {
		return 24 * 60, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf("%q isn't a time of the day", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}

// Opens returns the hours in which the policy may begin its steps. Nil means all hours.
func (p *Policy) Opens() *step.Hours { return p.opens }
