package bounds

// precise is the precision of a minimum's place in the logarithm of a scale: its square times a curvature near 1 is far
// below 1e-6 of a half-width.
const precise = 1e-5

// rough is that of a minimum whose function takes long, in the logit of a share: below 1e-7 of a half-width.
const rough = 5e-4
