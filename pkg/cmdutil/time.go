package cmdutil

import (
	"strconv"
	"strings"
	"time"
)

// ReadTime parses the value of a flag: a duration before now, or a date in the time zone place. For an empty text it returns the zero time.
func ReadTime(flag, text string, now time.Time, place *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, place); err == nil {
			return at, nil
		}
	}
	return time.Time{}, Usagef("%s %s: write 30m, 12h, 7d, or a date like 2026-01-31", flag, text)
}
