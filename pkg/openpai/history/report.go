package history

import "time"

// Report describes the jobs in the database, and the jobs that were taken over.
type Report struct {
	// People lists the people whose jobs are taken over, sorted by name.
	People []*Person `json:"people"`
	// Jobs is the number of jobs that were added, or that would be added. Known is the number of jobs that the history already has.
	Jobs  int `json:"jobs"`
	Known int `json:"known"`
	// LeftOutCount is the number of jobs that aren't taken over. LeftOut lists the first of these jobs.
	LeftOutCount int          `json:"leftOutCount"`
	LeftOut      []SkippedJob `json:"leftOut"`
	// WithoutText is the number of jobs that are taken over without their job file.
	WithoutText int `json:"withoutText,omitempty"`
}

// Person counts the jobs of one user.
type Person struct {
	Name string `json:"name"`
	// Here reports whether the person exists in the cluster.
	Here  bool `json:"here"`
	Jobs  int  `json:"jobs"`
	Known int  `json:"known"`
	// First and Last are the submission times of the person's first and last job.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// SkippedJob is a job that isn't taken over, with the reason.
type SkippedJob struct {
	Framework string `json:"framework"` // its name in the database
	User      string `json:"user"`
	Name      string `json:"name"`
	Why       string `json:"why"`
}
