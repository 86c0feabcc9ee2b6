"""List the paper's own numbers, table by table (Barron & Poole, ECCV 2016, and supplement)."""

FACTORS = (2, 4, 8, 16)
SCENES = ("art", "books", "moebius")

# Table 1, ms on a 2012 workstation, one thread: mean, deviation over 20 4-megapixel images.
SPEED = {
    "Barron et al. 2015": {
        "construction": (190, 167),
        "optimization": (460, 207),
        "total": (650, 266),
    },
    "the paper": {"construction": (35, 7), "optimization": (152, 36), "total": (187, 37)},
}
# Supplement, "Stereo-based Defocus".
FASTER_THAN_INTERVALS = 3.5

# Table 2, training set, and the supplement's version of it: bad-1 %, MAE, RMSE over all pixels,
# then where nothing is occluded.
STEREO = {
    "MC-CNN": {
        "input": (20.07, 5.93, 18.36, 10.42, 1.94, 9.07),
        "tree filter": (29.15, 5.67, 16.18, 20.15, 2.17, 7.71),
        "fast guided filter": (32.29, 5.91, 16.32, 23.62, 2.42, 7.98),
        "weighted median": (33.37, 5.30, 15.62, 26.29, 2.32, 8.22),
        "domain transform": (25.17, 5.69, 16.53, 15.53, 2.01, 7.72),
        "RBS": (19.49, 2.81, 8.44, 11.33, 1.40, 5.23),
    },
    "SGM": {
        "input": (24.37, 3.85, 10.68, 17.91, 2.44, 8.04),
        "tree filter": (31.47, 3.82, 9.55, 25.36, 2.51, 6.95),
        "fast guided filter": (34.40, 4.05, 9.66, 28.42, 2.72, 7.09),
        "weighted median": (35.47, 3.97, 9.99, 30.48, 2.76, 7.72),
        "domain transform": (28.78, 3.85, 9.90, 22.24, 2.49, 7.28),
        "RBS": (24.18, 3.44, 9.21, 17.95, 2.31, 7.06),
    },
}

# Supplement, table of depth super-resolution: RMSE at x2, x4, x8 and x16 of art, books and moebius,
# then seconds. The x2 entries of methods that only filter the enlarged map are over the full map,
# the others over a window.
_SUPERRES = """
nearest neighbour          6.55 7.41 8.87 11.24  6.16 6.32 6.63 7.36  6.59 6.78 6.98 7.48  0.003
bicubic                    5.32 6.00 7.15 9.35  5.00 5.17 5.46 5.98  5.34 5.52 5.66 6.07  0.007
bilinear                   4.57 5.53 6.99 9.45  3.94 4.31 4.71 5.38  4.19 4.55 4.83 5.37  0.004
fast global smoother       3.65 4.08 5.09 7.91  2.85 2.77 2.97 3.81  3.46 3.25 3.20 3.86  0.383
domain transform           3.95 4.76 6.14 8.49  1.80 2.40 3.23 4.44  1.83 2.40 3.35 4.64  0.021
weighted median            3.27 3.99 5.08 7.39  2.39 2.70 3.09 3.77  2.55 2.84 3.23 3.81  18
guided filter              3.60 4.25 5.49 7.99  2.39 2.52 2.89 3.89  2.50 2.57 2.90 3.61  0.434
fast guided filter         3.40 4.16 5.46 7.97  2.08 2.51 3.04 3.95  2.13 2.55 3.08 3.79  0.225
tree filter                3.27 4.15 5.46 7.93  2.00 2.38 3.00 4.04  2.25 2.57 3.13 4.00  0.304
WLS                        3.14 4.00 5.30 7.70  1.76 2.26 2.90 3.88  1.79 2.29 2.98 3.93  6.11
joint bilateral upsampling 3.17 4.02 5.37 7.59  1.83 2.18 2.80 4.00  1.83 2.13 2.71 3.76  1.98
Ferstl et al. 2013         3.19 4.06 5.08 7.61  1.52 2.21 2.47 3.54  1.47 2.03 2.58 3.50  140
Li et al. 2013, trained    3.02 3.12 4.43 7.43  1.18 1.70 2.55 3.58  1.11 1.59 2.28 3.50  700
Kwon et al. 2015, trained  0.87 1.30 2.05 3.56  0.51 0.75 1.14 1.88  0.57 0.89 1.37 2.14  300
bilateral solver           2.93 3.79 4.95 7.13  1.39 1.84 2.38 3.29  1.38 1.80 2.38 3.23  0.234
"""
_ROWS = {
    line[:27].strip(): [*map(float, line[27:].split())] for line in _SUPERRES.split("\n")[1:-1]
}
SUPERRES_SECONDS = {name: row[-1] for name, row in _ROWS.items()}

# Section 5.3, seconds per megapixel.
COLORIZATION = {"Levin et al. 2004": 80.99, "the paper": 0.854}

# Table 4: IOU in %, and ms spent on top of the network. Pascal VOC 2012, validation set.
SEGMENTATION = {"network": (62.25, 0), "dense CRF": (67.64, 918), "the paper": (66.00, 111)}

# Section 5.4 and the supplement's section 4, at a tolerance of 0.01.
LOW_RANK_SPEED_UP = 5.0


def superres(method: str, scene: str, factor: int) -> float | None:
    """Look up an entry of the table of super-resolution; None if there is none."""
    if method not in _ROWS or scene not in SCENES:
        return None
    return _ROWS[method][len(FACTORS) * SCENES.index(scene) + FACTORS.index(factor)]


# Mean absolute error and RMSE in millimetres on KITTI's depth completion benchmark, test set.
# Sources: IP-Basic's README (https://github.com/kujason/ip_basic); the others as listed in
# https://github.com/alexklwong/awesome-state-of-depth-completion.
KITTI_COMPLETION = {
    "IP-Basic 2018, not trained": (302.60, 1288.46),
    "surface geometry model 2021, not trained": (298.30, 1239.84),
    "KBNet 2021, trained without truth": (256.76, 1069.47),
    "NLSPN 2020, trained": (199.59, 741.68),
    "PENet 2021, trained": (210.55, 730.08),
    "CompletionFormer 2023, trained": (203.45, 708.87),
    "BP-Net 2024, trained": (194.69, 684.90),
}
