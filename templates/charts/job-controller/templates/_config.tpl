{{/* job-controller.jobs: the namespace where jobs run. */}}
{{- define "job-controller.jobs" -}}pai-jobs{{- end -}}

{{/* job-controller.credentials: the name of the Secret with the DSN. */}}
{{- define "job-controller.credentials" -}}
{{- .Values.credentialsSecret | default (printf "%s-credentials" (include "pai.name" .)) -}}
{{- end -}}

{{/* job-controller.check: values that don't go together. */}}
{{- define "job-controller.check" -}}
{{- if .Values.postgresql.enabled -}}
{{- if not (or .Values.credentialsSecret .Values.postgresql.dsn) -}}
{{- fail "postgresql.dsn: set the address of the database, or set postgresql.enabled to false" -}}
{{- end -}}
{{- else if gt (int .Values.replicas) 1 -}}
{{- fail "replicas: several controllers need a shared database; set postgresql.enabled and postgresql.dsn, or replicas to 1" -}}
{{- end -}}
{{- end -}}

{{/*
job-controller.claims: whether tasks get their GPUs by claims, "true" or "false".
*/}}
{{- define "job-controller.claims" -}}
{{- and .Values.claims (semverCompare ">=1.34-0" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
