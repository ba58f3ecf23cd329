{{- define "holdoutd.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}
{{- define "holdoutd.selector" -}}
app.kubernetes.io/name: holdoutd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "holdoutd.labels" -}}
{{ include "holdoutd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "holdoutd.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
{{- define "holdoutd.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.ledger.url) }}
{{- fail "replicas is more than 1: they need one ledger, so set ledger.url; without it each replica would have a budget of its own" }}
{{- end }}
{{- if and .Values.ledger.url (not .Values.serverKeySecret.name) }}
{{- fail "ledger.url is set: all replicas need the same server key, so name its secret in serverKeySecret" }}
{{- end }}
{{- end }}
