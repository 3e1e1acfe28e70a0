package history

import "time"

// Report describes the jobs that were found and the jobs that were taken over.
type Report struct {
	// People are the people whose jobs are taken, by name.
	People []*Person `json:"people"`
	// Jobs is the number of jobs that were added, or would be added; Known is the number of jobs that already exist.
	Jobs  int `json:"jobs"`
	Known int `json:"known"`
	// LeftOutCount is the number of jobs that aren't taken, and LeftOut holds the first of these jobs.
	LeftOutCount int       `json:"leftOutCount"`
	LeftOut      []LeftOut `json:"leftOut"`
	// WithoutText is how many jobs are taken without their text.
	WithoutText int `json:"withoutText,omitempty"`
}

// Person is a user with jobs.
type Person struct {
	Name string `json:"name"`
	// Here reports whether the person exists in the cluster.
	Here  bool `json:"here"`
	Jobs  int  `json:"jobs"`
	Known int  `json:"known"`
	// First and Last are the submission times of the first and the last job.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// LeftOut is a job that isn't taken, and why.
type LeftOut struct {
	Framework string `json:"framework"` // its name in the database
	User      string `json:"user"`
	Name      string `json:"name"`
	Why       string `json:"why"`
}
